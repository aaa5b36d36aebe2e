#include <algorithm>
#include <cstddef>
#include <utility>

#include "program/operands.h"
#include "program/passes/passes.h"

namespace dtrain {

namespace {

/// Returns true if the instruction changes nothing except the values that it writes, and does not wait for
/// other replicas.
bool only_writes_values(const Instruction& instruction) {
  if (instruction.phase != Phase::forward) return false;
  const auto* forward = std::get_if<LayerForward>(&instruction.work);
  return forward ? forward->gathered == 0 : std::holds_alternative<PassOn>(instruction.work);
}

}  // namespace

void remove_unread(CompileState& step) {
  Program& program = step.program;
  IdVector<ValueId, char> is_read(program.values.size(), false);
  for (const ProgramArray& output : program.outputs) is_read[output.value] = true;
  std::vector<Instruction>& instructions = program.instructions;
  size_t kept = instructions.size();  // the instructions at `kept` and later are kept
  Operands operands;
  for (size_t at = instructions.size(); at-- > 0;) {
    Instruction& instruction = instructions[at];
    find_operands(program, instruction, operands);
    if (only_writes_values(instruction) && std::none_of(operands.writes.begin(), operands.writes.end(),
                                                        [&](ValueId value) { return is_read[value]; }))
      continue;
    for (const ValueId value : operands.reads) is_read[value] = true;
    if (--kept != at) instructions[kept] = std::move(instruction);
  }
  instructions.erase(instructions.begin(), instructions.begin() + static_cast<std::ptrdiff_t>(kept));
}

}  // namespace dtrain
