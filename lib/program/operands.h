// The values that an instruction reads and writes.
#pragma once

#include <vector>

#include "program/program.h"

namespace dtrain {

/// An instruction's operands without ValueId::none. An operand that occurs twice is listed twice.
struct Operands {
  std::vector<ValueId> reads, writes;
};

/// Pointers to an instruction's operands, so that a pass can replace the operands.
struct OperandPlaces {
  std::vector<ValueId*> reads, writes;
};

/// Writes the operands of an instruction to `found`. The memory of `found` is reused if the same object is
/// passed for each instruction.
void find_operands(Program& program, Instruction& instruction, OperandPlaces& found);
void find_operands(const Program& program, const Instruction& instruction, Operands& found);
Operands operands_of(const Program& program, const Instruction& instruction);

}  // namespace dtrain
