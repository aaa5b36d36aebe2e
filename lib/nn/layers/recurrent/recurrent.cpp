#include "nn/layers/recurrent/recurrent.h"

#include <algorithm>

#include <fmt/format.h>

#include "nn/layers/array_offsets.h"

namespace dtrain {
namespace {

/// Initializes the bias of an lstm layer with the option unit_forget_bias. The bias of the forget gate is 1,
/// and another initializer fills the rest.
class ForgetBias : public Initializer {
 public:
  explicit ForgetBias(Configured<Initializer> others) : others_(std::move(others)) {}
  void fill(float* values, const Shape& shape, const Philox& random) const override {
    others_->fill(values, shape, random);
    const int64_t units = shape.elements() / 4;
    std::fill_n(values + units, units, 1.0f);
  }

 private:
  Configured<Initializer> others_;
};

ActivationSpec spec_of(const OptionalActivation& activation) {
  return activation ? (*activation)->spec : ActivationSpec{};
}

class PreparedRecurrent : public PreparedLayer {
 public:
  PreparedRecurrent(const LayerRequest& request, RecurrenceSpec spec, float dropout, float recurrent_dropout)
      : ops_(request.ops),
        has_bias_(spec.bias),
        dropout_(request.training ? dropout : 0.0f),
        recurrent_dropout_(request.training ? recurrent_dropout : 0.0f),
        samples_(request.batch),
        features_(request.inputs[0].shape[1]),
        state_columns_(spec.gates() * spec.units),
        stream_(request.stream) {
    spec.batch = samples_;
    spec.steps = request.inputs[0].shape[0];
    spec.inputs = features_;
    spec.training = request.training;
    spec.masked = request.is_masked(0);
    spec.has_state_factors = recurrent_dropout_ > 0;
    recurrence_ = ops_.recurrence(spec);
    requirements_.saved_bytes = recurrence_->saved_bytes();
    requirements_.scratch_bytes = recurrence_->scratch_bytes();
    if (dropout_ > 0 || recurrent_dropout_ > 0) {
      const int64_t inputs = dropout_ > 0 ? features_ : 0,
                    states = recurrent_dropout_ > 0 ? state_columns_ : 0;
      const size_t element = bytes_of(ops_.compute_type());
      ArrayOffsets scratch;
      scratch.add(recurrence_->scratch_bytes());
      ones_at_ = scratch.add(samples_ * std::max(inputs, states), sizeof(float));
      input_factors_at_ = scratch.add(samples_ * inputs, element);
      state_factors_at_ = scratch.add(samples_ * states, element);
      requirements_.scratch_bytes = scratch.bytes();
    }
    requirements_.backward_reads_inputs = trains_parameters(request);
  }

  void forward(const LayerArguments& args) override {
    recurrence_->forward({.src = args.input(),
                          .kernel = args.weights[0],
                          .recurrent_kernel = args.weights[1],
                          .bias = has_bias_ ? args.parameters[2] : nullptr,
                          .input_factors = input_factors(args),
                          .state_factors = state_factors(args),
                          .mask = args.mask(),
                          .initial_state = element(args.inputs, 1),
                          .initial_cell = element(args.inputs, 2),
                          .dst = args.output(),
                          .last_state = element(args.outputs, 1),
                          .last_cell = element(args.outputs, 2),
                          .saved = args.saved,
                          .scratch = args.scratch});
  }

  void backward(const LayerArguments& args) override {
    recurrence_->backward({.src = args.input(),
                           .kernel = args.weights[0],
                           .recurrent_kernel = args.weights[1],
                           .input_factors = input_factors(args),
                           .state_factors = state_factors(args),
                           .mask = args.mask(),
                           .diff_dst = args.diff_output(),
                           .diff_last_state = element(args.diff_outputs, 1),
                           .diff_last_cell = element(args.diff_outputs, 2),
                           .diff_src = args.diff_inputs[0],
                           .diff_initial_state = element(args.diff_inputs, 1),
                           .diff_initial_cell = element(args.diff_inputs, 2),
                           .diff_kernel = args.diff_parameters[0],
                           .diff_recurrent_kernel = args.diff_parameters[1],
                           .diff_bias = has_bias_ ? args.diff_parameters[2] : nullptr,
                           .saved = args.saved,
                           .scratch = args.scratch});
  }

 private:
  template <class Pointer>
  static Pointer element(const std::vector<Pointer>& arrays, size_t index) {
    return index < arrays.size() ? arrays[index] : nullptr;
  }

  /// Returns the dropout factors of the inputs, with shape [samples, features]. Returns null if there is no
  /// dropout.
  const void* input_factors(const LayerArguments& args) {
    return factors(args, dropout_, stream_, features_, input_factors_at_);
  }
  /// Returns the dropout factors of the state, with one set per gate. The shape is [samples, gates * units].
  /// Returns null if there is no dropout.
  const void* state_factors(const LayerArguments& args) {
    // The dropout of the state uses different random numbers than the dropout of the inputs.
    constexpr uint32_t kOtherStream = 0x7f4a7c15u;
    return factors(args, recurrent_dropout_, stream_ + kOtherStream, state_columns_, state_factors_at_);
  }

  /// Writes dropout factors of shape [samples, columns] to the scratch memory at `offset` and returns them.
  /// Dropped elements have the factor 0. All steps of a sequence have the same factors, which depend on the
  /// sample's index in the global batch. Returns null if the rate is 0.
  const void* factors(const LayerArguments& args, float rate, uint32_t stream, int64_t columns,
                      size_t offset) {
    if (rate == 0.0f) return nullptr;
    auto* const ones = static_cast<float*>(array_at(args.scratch, ones_at_));
    void* const made = array_at(args.scratch, offset);
    const int64_t n = samples_ * columns;
    ops_.fill(ones, 1, n);
    ops_.cast(made, ops_.compute_type(), ones, DType::float32, n);
    ops_.dropout(made, made, rate, Philox::of(args.seed, stream), args.step, args.first_sample, samples_,
                 columns);
    return made;
  }

  Ops& ops_;
  bool has_bias_;
  float dropout_, recurrent_dropout_;
  int64_t samples_, features_, state_columns_;
  uint32_t stream_;
  size_t ones_at_ = 0, input_factors_at_ = 0, state_factors_at_ = 0;  // offsets in scratch memory
  std::unique_ptr<Recurrence> recurrence_;
};

}  // namespace

Schema<RecurrentOptions> recurrent_schema(RecurrenceSpec::Kind kind, const std::string& doc) {
  using O = RecurrentOptions;
  Schema<O> schema(doc);
  schema.example("{units: 64}")
      .required("units", &O::units, "number of units, which is the size of the state", extent());
  schema.optional("activation", &O::activation, "activation function of the new state");
  if (kind != RecurrenceSpec::Kind::simple)
    schema.optional("recurrent_activation", &O::recurrent_activation, "activation function of the gates");
  schema.optional("use_bias", &O::use_bias, "whether to add a bias")
      .part("kernel_", &O::kernel, weight_schema("the kernel that multiplies the inputs"))
      .part("recurrent_", &O::recurrent, weight_schema("the kernel that multiplies the state"))
      .part("bias_", &O::bias, weight_schema("the bias"));
  if (kind == RecurrenceSpec::Kind::lstm)
    schema.optional("unit_forget_bias", &O::unit_forget_bias,
                    "whether the bias of the forget gate is 1 at the start of training");
  if (kind == RecurrenceSpec::Kind::gru)
    schema.optional(
        "reset_after", &O::reset_after,
        "If true, the reset gate is applied after the state is multiplied by its kernel, and the layer has "
        "two biases. If false, the reset gate is applied before this product, and the layer has one bias.");
  schema
      .optional("return_sequences", &O::return_sequences,
                "If true, the output contains the states after all steps, in the order of processing. If "
                "false, the output is the last state.")
      .optional("return_state", &O::return_state,
                kind == RecurrenceSpec::Kind::lstm
                    ? "Whether the layer has two more outputs: the last state and the last cell state. If "
                      "the layer's name is `name`, they are read as `name:1` and `name:2`."
                    : "Whether the last state is a second output of the layer. If the layer's name is "
                      "`name`, this output is read as `name:1`.")
      .optional("go_backwards", &O::go_backwards, "whether to process the sequence from the end to the start")
      .optional("dropout", &O::dropout,
                "Fraction of the input's features that are set to 0 in training. In all steps of a sample, "
                "the same features are dropped.",
                between_excluding_high(0.0, 1.0))
      .optional("recurrent_dropout", &O::recurrent_dropout,
                kind == RecurrenceSpec::Kind::simple
                    ? "Fraction of the state's elements that are set to 0 in training before the state is "
                      "multiplied by its kernel. In all steps of a sample, the same elements are dropped."
                    : "Fraction of the state's elements that are set to 0 in training before the state is "
                      "multiplied by its kernel. Each gate drops different elements, but in all steps of a "
                      "sample, the same elements are dropped.",
                between_excluding_high(0.0, 1.0));
  std::vector<std::string> details = {"use_bias", "activation", "go_backwards", "dropout",
                                      "recurrent_dropout"};
  if (kind != RecurrenceSpec::Kind::simple) details.emplace_back("recurrent_activation");
  if (kind == RecurrenceSpec::Kind::lstm) details.emplace_back("unit_forget_bias");
  if (kind == RecurrenceSpec::Kind::gru) details.emplace_back("reset_after");
  return schema.details(details);
}

std::vector<TensorSpec> RecurrentLayer::infer(std::span<const TensorSpec> inputs,
                                              const ReportError& report_error) const {
  if (inputs.size() != 1 && inputs.size() != 1 + states()) {
    report_error(
        fmt::format("expected one input (the sequences), or {} inputs (the sequences, and the initial {}), "
                    "but found {} inputs",
                    1 + states(), states() == 2 ? "state and cell state" : "state", inputs.size()));
    return {};
  }
  if (!float_input(inputs.first(1), report_error)) return {};
  if (inputs[0].shape.rank() != 2) {
    report_error(fmt::format("expected sequences of shape [steps, features], but '{}' has the shape {}",
                             inputs[0].name, inputs[0].shape.str()));
    return {};
  }
  const TensorSpec state{{}, Shape{options_.units}, DType::float32};
  for (const TensorSpec& input : inputs.subspan(1)) {
    if (!float_input({&input, 1}, report_error)) return {};
    if (input.shape == state.shape) continue;
    report_error(fmt::format("expected an initial state of shape {}, but '{}' has the shape {}",
                             state.shape.str(), input.name, input.shape.str()));
    return {};
  }
  for (const OptionalActivation* activation : {&options_.activation, &options_.recurrent_activation}) {
    if (!*activation || !**activation || !(**activation)->softmax) continue;
    report_error("softmax cannot be the activation of a recurrent layer");
    return {};
  }
  TensorSpec output = state;
  if (options_.return_sequences) output.shape = {inputs[0].shape[0], options_.units};
  std::vector<TensorSpec> outputs = {output};
  if (options_.return_state) outputs.insert(outputs.end(), states(), state);
  return outputs;
}

RecurrenceSpec RecurrentLayer::spec() const {
  RecurrenceSpec spec{.kind = kind_, .units = options_.units};
  spec.activation = spec_of(options_.activation);
  spec.recurrent_activation = spec_of(options_.recurrent_activation);
  spec.bias = options_.use_bias;
  spec.reset_after = options_.reset_after;
  spec.go_backwards = options_.go_backwards;
  spec.return_sequences = options_.return_sequences;
  return spec;
}

std::vector<ParameterSpec> RecurrentLayer::parameters(std::span<const TensorSpec> inputs) const {
  const RecurrenceSpec spec = this->spec();
  const int64_t columns = spec.gates() * options_.units;
  std::vector<ParameterSpec> specs = {
      options_.kernel.parameter("kernel", {inputs[0].shape[1], columns}),
      options_.recurrent.parameter("recurrent_kernel", {options_.units, columns})};
  if (!options_.use_bias) return specs;
  specs.push_back(
      options_.bias.parameter("bias", spec.bias_rows() == 2 ? Shape{2, columns} : Shape{columns}));
  Configured<Initializer>& initializer = specs.back().initializer;
  if (kind_ == RecurrenceSpec::Kind::lstm && options_.unit_forget_bias && initializer)
    initializer.value = std::make_shared<const ForgetBias>(initializer);
  return specs;
}

MaskRule RecurrentLayer::mask_rule() const {
  return options_.go_backwards && options_.return_sequences ? MaskRule::refused : MaskRule::read;
}

std::unique_ptr<PreparedLayer> RecurrentLayer::prepare(const LayerRequest& request) const {
  return std::make_unique<PreparedRecurrent>(request, spec(), static_cast<float>(options_.dropout),
                                             static_cast<float>(options_.recurrent_dropout));
}

}  // namespace dtrain
