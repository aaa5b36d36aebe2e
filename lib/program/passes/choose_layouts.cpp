#include <map>
#include <tuple>

#include "program/passes/definitions.h"
#include "program/passes/passes.h"

namespace dtrain {

namespace {

/// Replaces the operands of instructions by values in the layouts that the instructions need.
class LayoutChooser {
 public:
  explicit LayoutChooser(CompileState& step)
      : step_(step), program_(step.program), defined_(find_definitions(step.program)) {}

  void choose() {
    for (at_ = 0; at_ < program_.instructions.size(); ++at_)
      std::visit([this](auto& work) { choose_for(work); }, program_.instructions[at_].work);
    for (ProgramArray& output : program_.outputs) want(output.value, Layout::plain, -1);
    insert();
  }

 private:
  /// A conversion of a value to another layout, and the position of the conversion.
  struct Conversion {
    ValueId from = ValueId::none, to = ValueId::none;
    size_t first_reader = 0;
    bool is_sent = false;  // whether a reader is on another slot
  };

  void choose_for(LayerForward& work) {
    LayerCall& call = program_.calls[work.call];
    want_inputs(call);
    if (call.addend == ValueId::none) return;
    // This call replaces the call of the sum's layer. For this reason, the addend needs the layout in which
    // the sum's layer reads it.
    const auto sum = static_cast<int>(program_.instructions[at_].node);
    const size_t index = step_.node(sum).inputs[0].node == step_.state(sum).summand ? 1 : 0;
    want(call.addend, step_.state(sum).requirements.input_layout(index), -1);
  }
  void choose_for(LayerBackward& work) {
    LayerCall& call = program_.calls[work.call];
    const LayerRequirements& requirements = step_.state(call.node).requirements;
    for (size_t k = 0; k < call.diff_outputs.size(); ++k)
      want(call.diff_outputs[k], requirements.output_layout(k), static_cast<int>(call.node));
    want_inputs(call);
  }
  /// Chooses the layout that a view reads: the layout of the layer's input in forward, and the layout of the
  /// gradient of the layer's output in backward.
  void choose_for(PassOn& work) {
    const Instruction& instruction = program_.instructions[at_];
    const LayerRequirements& requirements = step_.state(instruction.node).requirements;
    if (instruction.phase == Phase::backward)
      want(work.from, requirements.output_layout(), static_cast<int>(instruction.node));
    else
      want(work.from, requirements.input_layout(0), -1);
  }
  void choose_for(ComputeLoss& work) { want(work.prediction, Layout::plain, -1); }
  void choose_for(ComputeMetrics& work) { want(work.prediction, Layout::plain, -1); }
  void choose_for(SumGradients& work) {
    for (ValueId& source : work.sources)
      want(source, program_.values[work.sum].layout, static_cast<int>(program_.instructions[at_].node));
  }
  void choose_for(SumBiasGradient& work) {
    const NodeId node = program_.instructions[at_].node;
    want(work.gradient, step_.state(node).requirements.output_layout(), static_cast<int>(node));
  }
  void choose_for(auto&) {}

  void want_inputs(LayerCall& call) {
    const LayerRequirements& requirements = step_.state(call.node).requirements;
    for (size_t k = 0; k < call.inputs.size(); ++k) want(call.inputs[k], requirements.input_layout(k), -1);
  }

  /// Replaces `operand` by its conversion to `layout`. All readers of an activation share a conversion.
  /// Conversions of a gradient are shared only by the instructions of one node (`node`), so that one of these
  /// instructions may overwrite the result. `node` is -1 for activations.
  void want(ValueId& operand, Layout layout, int node) {
    if (operand == ValueId::none || program_.values[operand].layout == layout) return;
    const auto [entry, is_new] = made_.try_emplace({operand, layout, node}, conversions_.size());
    if (is_new)
      conversions_.push_back({.from = operand, .to = add_converted(operand, layout), .first_reader = at_});
    Conversion& conversion = conversions_[entry->second];
    const bool is_output = at_ == program_.instructions.size();
    if (!is_output && program_.instructions[at_].slot != program_.values[operand].slot)
      conversion.is_sent = true;
    operand = conversion.to;
  }

  ValueId add_converted(ValueId from, Layout layout) {
    const ProgramValue source = program_.values[from];
    const bool is_gradient = source.kind == ProgramValue::Kind::gradient;
    return step_.add_value(is_gradient ? ProgramValue::Kind::gradient : ProgramValue::Kind::activation,
                           source.of, source.slot, layout);
  }

  /// Returns the phase of the instruction at a position. Returns Phase::forward for positions before the
  /// first and after the last instruction.
  Phase phase_at(int64_t at) const {
    const bool is_there = at >= 0 && static_cast<size_t>(at) < program_.instructions.size();
    return is_there ? program_.instructions[static_cast<size_t>(at)].phase : Phase::forward;
  }

  void insert() {
    Insertions insertions;
    for (const Conversion& conversion : conversions_) {
      const ProgramValue& source = program_.values[conversion.from];
      const ReorderId reorder = program_.reorders.add({source.slot, image_batch(step_.batch_shape(source.of)),
                                                       source.layout, program_.values[conversion.to].layout});
      const int64_t defined = defined_[conversion.from];
      const auto reader = static_cast<int64_t>(conversion.first_reader);
      Instruction made{source.slot, phase_at(conversion.is_sent ? defined : reader),
                       static_cast<NodeId>(source.of.node), step_.name_of(source.of) + " reorder",
                       ReorderValue{reorder, conversion.from, conversion.to}};
      if (conversion.is_sent)
        insertions.after(defined, std::move(made));
      else
        insertions.before(conversion.first_reader, std::move(made));
    }
    insertions.apply(program_.instructions);
  }

  CompileState& step_;
  Program& program_;
  IdVector<ValueId, int64_t> defined_;
  /// Index of the instruction whose operands are replaced. While the model's outputs are replaced, this is
  /// the number of instructions.
  size_t at_ = 0;
  std::map<std::tuple<ValueId, Layout, int>, size_t> made_;
  std::vector<Conversion> conversions_;
};

}  // namespace

void choose_layouts(CompileState& step) {
  LayoutChooser(step).choose();
}

}  // namespace dtrain
