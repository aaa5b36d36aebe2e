// Recomputes activations in the backward pass instead of keeping them (Chen et al., "Training Deep Nets with
// Sublinear Memory Cost", 2016).
#include <algorithm>
#include <map>
#include <utility>

#include "program/operands.h"
#include "program/passes/insertions.h"
#include "program/passes/passes.h"

namespace dtrain {

namespace {

/// The layers of one segment on one slot: {segment, slot}.
using Part = std::pair<int, int>;

class Recomputation {
 public:
  explicit Recomputation(CompileState& step)
      : step_(step),
        program_(step.program),
        wanted_(program_.values.size(), false),
        kept_(program_.values.size(), false),
        part_of_value_(program_.values.size(), kNoPart) {}

  void run() {
    find_parts_of_values();
    find_kept();
    find_calls();
    insert_calls();
    read_again();
  }

 private:
  static constexpr Part kNoPart{-1, -1};

  Part part_of(const Instruction& instruction) const {
    if (instruction.node == NodeId::none) return kNoPart;
    const int segment = step_.node(static_cast<int>(instruction.node)).recompute;
    return segment < 0 ? kNoPart : Part{segment, instruction.slot};
  }
  bool is_backward(const Instruction& instruction) const { return instruction.phase == Phase::backward; }

  /// Finds, for each value, the part whose forward instructions write the value. Only the values of a part
  /// can be recomputed.
  void find_parts_of_values() {
    Operands operands;
    for (const Instruction& instruction : program_.instructions) {
      if (instruction.phase != Phase::forward) continue;
      find_operands(program_, instruction, operands);
      for (const ValueId value : operands.writes) part_of_value_[value] = part_of(instruction);
    }
  }

  /// Finds the values that are wanted and the values that are kept. A value is wanted if its own part reads
  /// it in the backward pass. A value is kept if other parts read it in the backward pass, or if other slots
  /// read it.
  void find_kept() {
    Operands operands;
    for (const Instruction& instruction : program_.instructions) {
      find_operands(program_, instruction, operands);
      for (const ValueId value : operands.reads) {
        const Part part = part_of_value_[value];
        if (part == kNoPart) continue;
        const bool crosses = program_.values[value].slot != instruction.slot;
        if (!crosses && !is_backward(instruction)) continue;
        (!crosses && part == part_of(instruction) ? wanted_ : kept_)[value] = true;
      }
    }
  }

  bool is_made_again(ValueId value) const { return wanted_[value] && !kept_[value]; }

  /// Finds the forward calls that must be repeated, in reverse order. The inputs of a repeated call must be
  /// available, too: inputs from the same part are recomputed, and other inputs are kept.
  void find_calls() {
    Operands operands;
    for (size_t at = program_.instructions.size(); at-- > 0;) {
      const Instruction& instruction = program_.instructions[at];
      if (instruction.phase != Phase::forward) continue;
      if (const auto* view = std::get_if<PassOn>(&instruction.work); view && kept_[view->to])
        kept_[view->from] = true;
      const Part part = part_of(instruction);
      if (part == kNoPart) continue;
      find_operands(program_, instruction, operands);
      if (std::none_of(operands.writes.begin(), operands.writes.end(),
                       [this](ValueId value) { return is_made_again(value); }))
        continue;
      for (const ValueId value : operands.reads)
        (part_of_value_[value] == part ? wanted_ : kept_)[value] = true;
      calls_[part].push_back(at);
    }
    for (auto& [part, calls] : calls_) std::reverse(calls.begin(), calls.end());
  }

  /// Inserts the repeated calls before the first backward instruction of each part. The repeated calls have
  /// the same arguments as the original calls, and compute bitwise identical results.
  void insert_calls() {
    Insertions insertions;
    for (size_t at = 0; at < program_.instructions.size(); ++at) {
      const Part part = part_of(program_.instructions[at]);
      if (part == kNoPart || !is_backward(program_.instructions[at])) continue;
      const auto calls = calls_.extract(part);
      if (calls.empty()) continue;
      for (const size_t call : calls.mapped()) insertions.before(at, again(program_.instructions[call]));
    }
    insertions.apply(program_.instructions);
  }

  /// Returns a copy of a forward instruction. The copy writes to new values.
  Instruction again(const Instruction& forward) {
    Instruction made = forward;
    made.phase = Phase::backward;
    if (auto* work = std::get_if<LayerForward>(&made.work))
      work->call = program_.calls.add(LayerCall(program_.calls[work->call]));
    find_operands(program_, made, places_);
    for (ValueId* place : places_.reads) replace(*place);
    for (ValueId* place : places_.writes) {
      const ValueId old = *place;
      *place = program_.values.add(ProgramValue(program_.values[old]));
      if (is_made_again(old)) made_again_[old] = *place;
    }
    return made;
  }

  void replace(ValueId& operand) const {
    if (const auto found = made_again_.find(operand); found != made_again_.end()) operand = found->second;
  }

  /// Makes the backward instructions of each part read the recomputed values.
  void read_again() {
    for (Instruction& instruction : program_.instructions) {
      if (!is_backward(instruction) || part_of(instruction) == kNoPart) continue;
      find_operands(program_, instruction, places_);
      for (ValueId* place : places_.reads) replace(*place);
    }
  }

  CompileState& step_;
  Program& program_;
  IdVector<ValueId, char> wanted_, kept_;
  IdVector<ValueId, Part> part_of_value_;
  std::map<Part, std::vector<size_t>> calls_;  // positions of the forward instructions that must be repeated
  std::map<ValueId, ValueId> made_again_;
  OperandPlaces places_;
};

}  // namespace

void recompute(CompileState& step) {
  if (!step.training()) return;
  const auto is_in_segment = [](const GraphNode& node) { return node.recompute >= 0; };
  if (std::any_of(step.graph.nodes.begin(), step.graph.nodes.end(), is_in_segment)) Recomputation(step).run();
}

}  // namespace dtrain
