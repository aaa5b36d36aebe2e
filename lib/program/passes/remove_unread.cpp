#include <algorithm>
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
  std::vector<Instruction> kept;  // last instruction first
  Operands operands;
  for (size_t at = program.instructions.size(); at-- > 0;) {
    Instruction& instruction = program.instructions[at];
    find_operands(program, instruction, operands);
    if (only_writes_values(instruction) && std::none_of(operands.writes.begin(), operands.writes.end(),
                                                        [&](ValueId value) { return is_read[value]; }))
      continue;
    for (const ValueId value : operands.reads) is_read[value] = true;
    kept.push_back(std::move(instruction));
  }
  std::reverse(kept.begin(), kept.end());
  program.instructions = std::move(kept);
}

}  // namespace dtrain
