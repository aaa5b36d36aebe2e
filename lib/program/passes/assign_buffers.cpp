#include <algorithm>

#include "program/operands.h"
#include "program/passes/passes.h"

namespace dtrain {

namespace {

constexpr int64_t kNever = -1;

class BufferAssignment {
 public:
  explicit BufferAssignment(CompileState& step)
      : step_(step),
        program_(step.program),
        root_(program_.values.size(), ValueId::none),
        last_read_(program_.values.size(), kNever),
        kept_(program_.values.size(), false) {}

  void run() {
    find_last_reads();
    for (ProgramArray& column : program_.columns) {
      const BufferId buffer = add_buffer(column.value);
      program_.buffers[buffer].from_start = true;
    }
    Operands operands;
    for (at_ = 0; at_ < static_cast<int64_t>(program_.instructions.size()); ++at_) {
      const Instruction& instruction = program_.instructions[static_cast<size_t>(at_)];
      std::visit([this](const auto& work) { share(work); }, instruction.work);
      find_operands(program_, instruction, operands);
      for (const ValueId value : operands.writes)
        if (program_.values[value].buffer == BufferId::none) add_buffer(value);
      if (const auto* send = std::get_if<SendValue>(&instruction.work)) note_sent(*send);
    }
    for (const ProgramArray& output : program_.outputs) {
      ProgramBuffer& buffer = buffer_of(output.value);
      buffer.is_kept = buffer.from_start = true;
    }
    std::erase_if(program_.instructions, [](const Instruction& instruction) {
      return std::holds_alternative<PassOn>(instruction.work);
    });
  }

 private:
  bool is_lent(const SendValue& send) const {
    return program_.links[send.link].keeping == Link::Keeping::lent;
  }
  ValueId root(ValueId value) const { return root_[value] == ValueId::none ? value : root_[value]; }
  ProgramBuffer& buffer_of(ValueId value) { return program_.buffers[program_.values[value].buffer]; }

  /// Finds the last read of each value. A read of a view counts as a read of the value whose memory it uses.
  void find_last_reads() {
    Operands operands;
    for (size_t at = 0; at < program_.instructions.size(); ++at) {
      const Instruction& instruction = program_.instructions[at];
      find_operands(program_, instruction, operands);
      for (const ValueId value : operands.reads) last_read_[root(value)] = static_cast<int64_t>(at);
      if (const auto* view = std::get_if<PassOn>(&instruction.work)) root_[view->to] = root(view->from);
      if (const auto* send = std::get_if<SendValue>(&instruction.work); send && is_lent(*send))
        kept_[root(send->value)] = true;
    }
    for (const ProgramArray& output : program_.outputs) kept_[root(output.value)] = true;
  }

  /// Returns true if the current instruction is the last one that reads the value's memory.
  bool ends_here(ValueId value) const { return !kept_[root(value)] && last_read_[root(value)] == at_; }

  BufferId add_buffer(ValueId id) {
    ProgramValue& value = program_.values[id];
    value.buffer =
        program_.buffers.add({.value = id, .slot = value.slot, .bytes = value.bytes, .lifetime = {}});
    return value.buffer;
  }

  void overwrite(ValueId value, ValueId old) { program_.values[value].buffer = program_.values[old].buffer; }

  void share(const PassOn& work) { overwrite(work.to, work.from); }

  void share(const LayerForward& work) {
    const LayerCall& call = program_.calls[work.call];
    if (!step_.state(call.node).requirements.forward_in_place) return;
    const ValueId old = call.addend != ValueId::none ? call.addend : call.inputs[0], out = call.outputs[0];
    if (ends_here(old) && program_.values[old].layout == program_.values[out].layout) overwrite(out, old);
  }

  void share(const LayerBackward& work) {
    const LayerCall& call = program_.calls[work.call];
    if (!step_.state(call.node).requirements.backward_in_place || call.diff_inputs[0] == ValueId::none)
      return;
    const ValueId old = call.diff_outputs[0];
    if (old == ValueId::none || !ends_here(old)) return;
    // Gradients of several outputs may share memory. A shared gradient is not overwritten, because the call
    // may still need it for another output.
    const auto is_same = [&](ValueId other) { return other != ValueId::none && root(other) == root(old); };
    if (std::count_if(call.diff_outputs.begin(), call.diff_outputs.end(), is_same) == 1)
      overwrite(call.diff_inputs[0], old);
  }

  /// If a source of the sum has no later reader, the sum overwrites this source.
  void share(const SumGradients& work) {
    for (const ValueId source : work.sources)
      if (ends_here(source)) overwrite(work.sum, source);
  }
  void share(const auto&) {}

  void note_sent(const SendValue& send) {
    ProgramBuffer& buffer = buffer_of(send.value);
    if (!is_lent(send)) return;
    buffer.is_kept = buffer.is_lent = true;
  }

  CompileState& step_;
  Program& program_;
  // For a view: the value whose memory the view uses. `none` for a value that has its own memory.
  IdVector<ValueId, ValueId> root_;
  IdVector<ValueId, int64_t> last_read_;
  IdVector<ValueId, char> kept_;
  int64_t at_ = 0;  // index of the current instruction
};

}  // namespace

void assign_buffers(CompileState& step) {
  BufferAssignment(step).run();
}

}  // namespace dtrain
