// Where each value of a program is made.
#pragma once

#include <cstdint>

#include "program/insertions.h"
#include "program/operands.h"

namespace dtrain {

/// The position of the last instruction that writes each value; Insertions::kFront of columns, and of values
/// that nothing writes.
inline IdVector<ValueId, int64_t> find_definitions(const Program& program) {
  IdVector<ValueId, int64_t> defined(program.values.size(), Insertions::kFront);
  Operands operands;
  for (size_t at = 0; at < program.instructions.size(); ++at) {
    find_operands(program, program.instructions[at], operands);
    for (const ValueId value : operands.writes) defined[value] = static_cast<int64_t>(at);
  }
  return defined;
}

}  // namespace dtrain
