// Finds the last instruction that writes each value.
#pragma once

#include <cstdint>

#include "program/operands.h"
#include "program/passes/insertions.h"

namespace dtrain {

/// Returns, for each value, the position of the last instruction that writes the value. The position is
/// Insertions::kFront for columns and for values that no instruction writes.
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
