// The values that an instruction reads and writes.
#pragma once

#include <vector>

#include "program/program.h"

namespace dtrain {

/// An instruction's operands, without those that are none. An operand that occurs twice is listed twice.
struct Operands {
  std::vector<ValueId> reads, writes;
};

/// The same as pointers, by which a pass replaces them.
struct OperandPlaces {
  std::vector<ValueId*> reads, writes;
};

/// Into vectors that the caller keeps, so that a walk over a program allocates little.
void find_operands(Program& program, Instruction& instruction, OperandPlaces& found);
void find_operands(const Program& program, const Instruction& instruction, Operands& found);
Operands operands_of(const Program& program, const Instruction& instruction);

}  // namespace dtrain
