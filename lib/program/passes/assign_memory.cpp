#include <algorithm>
#include <utility>

#include "program/operands.h"
#include "program/passes/passes.h"

namespace dtrain {

namespace {

void touch(ProgramBuffer& buffer, int time) {
  Lifetime& life = buffer.lifetime;
  life.first = life.first < 0 ? time : std::min(life.first, time);
  life.last = std::max(life.last, time);
}

void find_lifetimes(Program& program) {
  Operands operands;
  for (size_t at = 0; at < program.instructions.size(); ++at) {
    find_operands(program, program.instructions[at], operands);
    for (const auto* list : {&operands.reads, &operands.writes})
      for (const ValueId value : *list)
        touch(program.buffers[program.values[value].buffer], static_cast<int>(at));
  }
  for (ProgramBuffer& buffer : program.buffers) {
    if (buffer.from_start) touch(buffer, 0);
    if (buffer.is_kept) touch(buffer, Arena::kToTheEnd);
  }
}

/// Assigns offsets to the buffers of a slot. All microbatches in flight share the memory of a buffer that is
/// live only within the forward part or only within the backward part of a microbatch, unless another slot
/// reads the buffer directly. This is possible because a slot runs one part of one microbatch at a time.
void place_buffers(Program& program, int slot, int backward, bool several) {
  Arena frame, shared;
  std::vector<std::pair<ProgramBuffer*, int>> placed;
  for (ProgramBuffer& buffer : program.buffers) {
    if (buffer.slot != slot || buffer.lifetime.first < 0) continue;
    const Lifetime& life = buffer.lifetime;
    buffer.is_shared = several && (life.last < backward || life.first >= backward) && !buffer.is_lent;
    Arena& arena = buffer.is_shared ? shared : frame;
    placed.emplace_back(&buffer, arena.add(buffer.bytes));
    arena.touch(placed.back().second, life.first);
    arena.touch(placed.back().second, life.last);
  }
  frame.assign();
  shared.assign();
  for (const auto& [buffer, number] : placed)
    buffer->offset = (buffer->is_shared ? shared : frame).offset(number);
  program.arenas[static_cast<size_t>(slot)] = {.frame = frame.bytes(), .shared = shared.bytes()};
}

}  // namespace

void assign_memory(CompileState& step) {
  Program& program = step.program;
  find_lifetimes(program);
  const auto& instructions = program.instructions;
  const auto is_backward = [](const Instruction& i) { return i.phase == Phase::backward; };
  const auto backward = static_cast<int>(std::find_if(instructions.begin(), instructions.end(), is_backward) -
                                         instructions.begin());
  for (int slot = 0; slot < program.slots(); ++slot) {
    const auto& in_flight = step.options.in_flight;
    const bool several = !in_flight.empty() && in_flight[static_cast<size_t>(slot)] > 1;
    place_buffers(program, slot, backward, several);
  }
}

}  // namespace dtrain
