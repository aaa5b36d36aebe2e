#include <algorithm>
#include <set>
#include <utility>

#include "program/passes/passes.h"

namespace dtrain {

namespace {

using Kind = ProgramValue::Kind;

class BackwardLowering {
 public:
  explicit BackwardLowering(CompileState& step) : step_(step), program_(step.program) {}

  void lower() {
    for (int i = step_.count() - 1; i >= 0; --i) {
      add_activity_gradients(i);
      const NodeState& s = step_.state(i);
      if (!s.is_prepared || !s.needs_gradient) continue;
      lower_node(i);
      note_ready(i);
    }
    // These instructions are emitted last, so that a slot waits for the gradients of other slots only after
    // it has computed all its own gradients.
    for (auto& [instruction, slice] : late_) {
      std::get<AddSharedGradient>(instruction.work).is_first = given_.insert(slice).second;
      program_.instructions.push_back(std::move(instruction));
    }
  }

 private:
  void emit(int i, std::string name, Work work) {
    program_.instructions.push_back(
        {step_.slot_of(i), Phase::backward, static_cast<NodeId>(i), std::move(name), std::move(work)});
  }
  bool is_trained(int i, const ParameterSlice& slice) const {
    return slice.offset < step_.layout_of(i).with_gradient();
  }

  /// Computes the gradients of the penalties on the node's outputs.
  void add_activity_gradients(int i) {
    const GraphNode& n = step_.node(i);
    if (!n.activity_penalty()) return;
    for (int k = 0; k < static_cast<int>(n.readable_outputs()); ++k) {
      const ValueRef of = step_.computed({i, k});
      NodeState& s = step_.state(of.node);
      if (!s.needs_gradient) continue;
      const auto output = static_cast<size_t>(of.output);
      const ValueId gradient =
          step_.add_value(Kind::gradient, of, step_.slot_of(i), s.requirements.output_layout(output));
      s.gradients[output].push_back(gradient);
      emit(i, "gradient of " + step_.name_of({i, k}) + " penalty",
           ComputeActivityGradient{.value = step_.value_of({i, k}),
                                   .to = gradient,
                                   .penalty = n.activity_penalty(),
                                   .elements = step_.batch_shape(of).elements()});
    }
  }

  void lower_node(int i) {
    const NodeState& s = step_.state(i);
    if (std::all_of(s.gradients.begin(), s.gradients.end(), [](const auto& given) { return given.empty(); }))
      return zero_gradients(i);
    const LayerRequirements& requirements = s.requirements;
    std::vector<GradientPlace> places = gradient_places(i);
    const auto bias =
        requirements.bias < 0 ? GradientPlace{} : places[static_cast<size_t>(requirements.bias)];
    std::vector<ValueId> gradients;
    for (size_t k = 0; k < s.gradients.size(); ++k)
      gradients.push_back(gather_gradient(i, k, k == 0 ? bias : GradientPlace{}));
    if (requirements.is_view || requirements.passes_gradient) {
      pass_on(i, gradients[0]);
    } else {
      lower_layer(i, std::move(gradients), std::move(places));
    }
  }

  /// Adds a value for the gradient of the node's k-th input, in the layout of the node's layer.
  ValueId add_gradient(int i, size_t k) {
    const ValueRef input = step_.computed(step_.node(i).inputs[k]);
    const ValueId gradient =
        step_.add_value(Kind::gradient, input, step_.slot_of(i), step_.state(i).requirements.input_layout(k));
    step_.state(input.node).gradients[static_cast<size_t>(input.output)].push_back(gradient);
    return gradient;
  }
  bool needs_gradient(ValueRef input) const { return step_.state(input.node).needs_gradient; }

  /// Makes the gradient of every input of the node a view of `gradient`.
  void pass_on(int i, ValueId gradient) {
    const GraphNode& n = step_.node(i);
    for (size_t k = 0; k < n.inputs.size(); ++k)
      if (needs_gradient(n.inputs[k]))
        emit(i, "gradient of " + n.name + " view", PassOn{.from = gradient, .to = add_gradient(i, k)});
  }

  /// Returns the sum of the gradients that the readers of an output contribute; none if no reader contributes
  /// a gradient. Applies the gradient of a fused activation, unless the layer applies this gradient itself.
  ValueId gather_gradient(int i, size_t output, const GradientPlace& bias) {
    const NodeState& s = step_.state(i);
    const std::vector<ValueId>& sources = s.gradients[output];
    if (sources.empty()) return ValueId::none;
    const ValueRef of{i, static_cast<int>(output)};
    const bool activated = output == 0 && !s.requirements.undoes_activation;
    const ActivationSpec activation = activated ? s.activation : ActivationSpec{};
    const bool linear = activation.kind == Activation::linear;
    const Shape shape = step_.batch_shape(of);
    const std::string name = "gradient of " + step_.name_of(of);
    if (sources.size() == 1 && linear) {
      if (bias.is_wanted())
        emit(
            i, name + " bias",
            SumBiasGradient{
                .gradient = sources[0], .bias = bias, .rows = shape.positions(), .columns = shape.columns()});
      return sources[0];
    }
    const ValueId sum =
        step_.add_value(Kind::gradient, of, step_.slot_of(i), s.requirements.output_layout(output));
    emit(i, name + " sum",
         SumGradients{.activation = activation,
                      .activated = linear ? ValueId::none : s.values[output],
                      .sources = sources,
                      .sum = sum,
                      .bias = bias,
                      .elements = shape.elements(),
                      .columns = shape.columns()});
    return sum;
  }

  void lower_layer(int i, std::vector<ValueId> gradients, std::vector<GradientPlace> places) {
    const NodeState& s = step_.state(i);
    const GraphNode& n = step_.node(i);
    const LayerRequirements& requirements = s.requirements;
    LayerCall call = program_.calls[s.forward];
    call.addend = ValueId::none;
    if (!requirements.backward_reads_inputs) std::fill(call.inputs.begin(), call.inputs.end(), ValueId::none);
    if (!requirements.backward_reads_outputs)
      std::fill(call.outputs.begin(), call.outputs.end(), ValueId::none);
    call.diff_outputs = std::move(gradients);
    for (size_t k = 0; k < n.inputs.size(); ++k)
      call.diff_inputs.push_back(needs_gradient(n.inputs[k]) ? add_gradient(i, k) : ValueId::none);
    call.gradients = places;
    if (requirements.scratch_bytes)
      call.scratch =
          step_.add_array(Kind::scratch, "scratch of " + n.name, call.slot, requirements.scratch_bytes);
    emit(i, n.name + " backward",
         LayerBackward{.call = program_.calls.add(std::move(call)),
                       .gathered = requirements.backward_gathered});
    add_shared_gradients(i, places);
  }

  /// Returns the places for the gradients of all parameters of a node. If none of the parameters changes in
  /// training, no gradient is needed.
  std::vector<GradientPlace> gradient_places(int i) {
    std::vector<GradientPlace> places(step_.node(i).parameters.size());
    if (!step_.node(i).has_moving_parameters()) return places;
    for (size_t k = 0; k < places.size(); ++k) places[k] = gradient_place(i, k);
    return places;
  }

  /// Returns the place to which the layer writes the gradient of a parameter. The first layer on the owner's
  /// slot writes directly to the slot's gradients. Further layers that share the parameter, and later
  /// microbatches, write to separate arrays, which are then added. A layer computes the gradients of all of
  /// its parameters or of none, so the gradient of a parameter that is not trained goes to an array that is
  /// never read.
  GradientPlace gradient_place(int i, size_t index) {
    const ParameterSlice& slice = step_.slice_of(i, index);
    const bool own_slot = step_.slot_of(i) == step_.layout.owner_slot(i);
    GradientPlace place;
    if (is_trained(i, slice) && own_slot && given_.insert(&slice).second) {
      place.offset = slice.offset;
      if (step_.options.reduces_gradients || !step_.options.accumulates) return place;
    }
    place.value = step_.add_array(Kind::parameter_gradient, "gradient of " + slice.path(), step_.slot_of(i),
                                  static_cast<size_t>(slice.elements()) * sizeof(float));
    return place;
  }

  void add_shared_gradients(int i, const std::vector<GradientPlace>& places) {
    for (size_t k = 0; k < places.size(); ++k) {
      const GradientPlace& place = places[k];
      const ParameterSlice& slice = step_.slice_of(i, k);
      if (place.value == ValueId::none || !is_trained(i, slice)) continue;
      const std::string name = "gradient of " + slice.path();
      const int64_t elements = slice.elements();
      if (place.offset >= 0) {
        emit(i, name + " accumulate",
             AccumulateGradient{.from = place.value, .offset = place.offset, .elements = elements});
        continue;
      }
      const int owner = step_.layout.owner_slot(i);
      AddSharedGradient work{.from = place.value, .to = {.offset = slice.offset}, .elements = elements};
      if (owner == step_.slot_of(i)) {
        work.is_first = given_.insert(&slice).second;
        emit(i, name + " sum", work);
      } else {
        late_.push_back({{owner, Phase::backward, NodeId::none, name + " sum", work}, &slice});
      }
    }
  }

  /// Writes the gradients of a node that no loss depends on. The parameters of the node do not change, unless
  /// another layer that shares them has a gradient. The "gradient" of a statistic is this replica's part of
  /// the statistic. Because these parts add up to the statistic, the statistic does not change.
  void zero_gradients(int i) {
    const GraphNode& n = step_.node(i);
    if (!n.trainable || n.shared_with >= 0) return;
    for (size_t k = 0; k < n.parameters.size(); ++k) {
      const ParameterSlice& slice = step_.slice_of(i, k);
      if (!is_trained(i, slice) || !given_.insert(&slice).second) continue;
      const bool is_statistic = slice.moving_average.has_value();
      ZeroGradient work{.to = {.offset = slice.offset},
                        .is_statistic = is_statistic,
                        .statistic = {},
                        .elements = slice.elements()};
      if (is_statistic) work.statistic.offset = slice.offset;
      emit(i, "gradient of " + slice.path() + " zero", work);
    }
  }

  /// Emits GradientsReady for a node's parameters. To be called for the nodes in the order of their
  /// parameters in the layout. A shared parameter belongs to the first of the layers that share it. Among
  /// these layers, the backward call of the first layer runs last.
  void note_ready(int i) {
    if (step_.node(i).shared_with >= 0 || program_.slots() > 1) return;
    int64_t end = ready_;
    for (size_t k = 0; k < step_.node(i).parameters.size(); ++k) {
      const ParameterSlice& slice = step_.slice_of(i, k);
      if (slice.offset < step_.layout_of(i).trained()) end = std::max(end, slice.offset + slice.elements());
    }
    if (end == ready_) return;
    ready_ = end;
    emit(i, "gradients ready", GradientsReady{end});
  }

  CompileState& step_;
  Program& program_;
  std::set<const ParameterSlice*> given_;  // slices whose gradients some layer has written
  std::vector<std::pair<Instruction, const ParameterSlice*>> late_;
  int64_t ready_ = 0;  // the gradients in [0, ready_) are complete
};

}  // namespace

void lower_backward(CompileState& step) {
  if (step.training()) BackwardLowering(step).lower();
}

}  // namespace dtrain
