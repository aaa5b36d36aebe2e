#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "config/or_auto.h"
#include "nn/layers/activations/activation.h"
#include "nn/layers/common.h"
#include "nn/layers/core/tied_dense.h"
#include "nn/layers/kernel_and_bias.h"
#include "nn/layers/table.h"

namespace dtrain {
namespace {

struct DenseOptions : KernelAndBias {
  OrAuto<int64_t> units;

  static const Schema<DenseOptions>& schema() {
    using O = DenseOptions;
    static const auto schema = with_kernel_and_bias(
        Schema<O>("A fully connected layer. It computes activation(x @ kernel + bias) along the last axis of "
                  "the input.")
            .example("{units: 64, activation: relu}")
            .required("units", &O::units,
                      "number of units, which is the size of the output's last axis. `auto` means the number "
                      "of classes, or the width of the target, in the training split; it is only possible in "
                      "layers that produce an output of the model",
                      or_auto(extent())),
        "inputs, units");
    return schema;
  }
};

struct TiedDenseOptions {
  OptionalActivation activation;
  bool use_bias = false;

  static const Schema<TiedDenseOptions>& schema() {
    using O = TiedDenseOptions;
    static const auto schema =
        Schema<O>(
            "Computes activation(x @ transpose(embeddings)) along the last axis of the input, with the "
            "vectors of an embedding.")
            .optional("activation", &O::activation, "activation function of the output")
            .optional("use_bias", &O::use_bias, "Must be false, because this layer has no bias.")
            .details({"activation", "use_bias"})
            .rule([](const O& options, const ConfigNode& node, Diagnostics& diagnostics) {
              if (options.use_bias)
                diagnostics.error(*node.find("use_bias"),
                                  "use_bias must be false, because a dense layer with the weights of an "
                                  "embedding has no bias");
            });
    return schema;
  }
};

/// The parameters of a dense layer: a kernel and, optionally, a bias. The shape of the kernel is [inputs,
/// units], or [units, inputs] if the kernel is transposed.
struct DenseParameters {
  bool transposed = false;
  bool bias = false;
};

class PreparedDense : public PreparedLayer {
 public:
  PreparedDense(const LayerRequest& request, const DenseParameters& parameters) : parameters_(parameters) {
    const auto [transposed, bias] = parameters;
    const int64_t inputs = request.inputs[0].shape.back(), units = request.output().shape.back();
    const int64_t rows = batch_elements(request, request.output().shape) / units;
    forward_ = product(request.ops, {.m = rows,
                                     .n = units,
                                     .k = inputs,
                                     .transpose_b = transposed,
                                     .bias = bias,
                                     .activation = request.activation});
    if (request.training && request.input_needs_gradient[0])
      by_input_ = product(request.ops,
                          {.m = rows, .n = inputs, .k = units, .transpose_b = !transposed, .activation = {}});
    if (trains_parameters(request)) {
      by_kernel_ = product(request.ops, {.m = transposed ? units : inputs,
                                         .n = transposed ? inputs : units,
                                         .k = rows,
                                         .transpose_a = true,
                                         .float32_result = true,
                                         .activation = {}});
      requirements_.backward_reads_inputs = true;
      if (bias) requirements_.bias = 1;
    }
  }

  void forward(const LayerArguments& args) override {
    forward_->run(args.input(), args.weights[0], parameters_.bias ? args.weights[1] : nullptr, args.output(),
                  args.scratch);
  }

  void backward(const LayerArguments& args) override {
    const void *left = args.input(), *right = args.diff_output();
    if (parameters_.transposed) std::swap(left, right);
    if (by_kernel_) by_kernel_->run(left, right, nullptr, args.diff_parameters[0], args.scratch);
    if (by_input_)
      by_input_->run(args.diff_output(), args.weights[0], nullptr, args.diff_inputs[0], args.scratch);
  }

 private:
  std::unique_ptr<Matmul> product(Ops& ops, const MatmulSpec& spec) {
    auto made = ops.matmul(spec);
    requirements_.scratch_bytes = std::max(requirements_.scratch_bytes, made->scratch_bytes());
    return made;
  }

  const DenseParameters parameters_;
  std::unique_ptr<Matmul> forward_, by_input_, by_kernel_;
};

/// Returns the result of Layer::infer(): the shape of the input, with `units` as the size of the last axis.
std::vector<TensorSpec> with_units(const TensorSpec& input, int64_t units) {
  TensorSpec output{{}, input.shape, DType::float32};
  output.shape[output.shape.rank() - 1] = units;
  return {output};
}

class Dense : public LayerWith<DenseOptions> {
 public:
  using LayerWith::LayerWith;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs,
                                const ReportError& report_error) const override {
    const TensorSpec* input = float_input_with_axis(inputs, "of features", report_error);
    return input ? with_units(*input, units()) : std::vector<TensorSpec>();
  }

  std::vector<ParameterSpec> parameters(std::span<const TensorSpec> inputs) const override {
    return options_.parameters({inputs[0].shape.back(), units()}, units());
  }

  MaskRule mask_rule() const override { return MaskRule::passed; }

  std::unique_ptr<PreparedLayer> prepare(const LayerRequest& request) const override {
    return std::make_unique<PreparedDense>(request, DenseParameters{.bias = options_.use_bias});
  }

  ConfigNode open_units() const override { return options_.units.written; }
  Configured<Layer> activation() const override { return activation_layer(options_.activation); }
  bool can_fuse(const ActivationSpec& spec) const override { return from_output(spec); }

 private:
  int64_t units() const { return *options_.units.value; }
};

class TiedDense : public LayerWith<TiedDenseOptions> {
 public:
  TiedDense(const TiedDenseOptions& options, ParameterSpec embeddings)
      : LayerWith(options), embeddings_(std::move(embeddings)) {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs,
                                const ReportError& report_error) const override {
    const TensorSpec* input = float_input_with_axis(inputs, "of features", report_error);
    if (!input) return {};
    if (input->shape.back() == embeddings_.shape[1]) return with_units(*input, embeddings_.shape[0]);
    report_error(
        fmt::format("the embedding has vectors of length {}, so the last axis of the input must have this "
                    "length, but '{}' has the shape {}",
                    embeddings_.shape[1], input->name, input->shape.str()));
    return {};
  }

  std::vector<ParameterSpec> parameters(std::span<const TensorSpec>) const override { return {embeddings_}; }

  MaskRule mask_rule() const override { return MaskRule::passed; }

  std::unique_ptr<PreparedLayer> prepare(const LayerRequest& request) const override {
    return std::make_unique<PreparedDense>(request, DenseParameters{.transposed = true});
  }

  Configured<Layer> activation() const override { return activation_layer(options_.activation); }
  bool can_fuse(const ActivationSpec& spec) const override { return from_output(spec); }

 private:
  const ParameterSpec embeddings_;
};

}  // namespace

void add_dense(Registry<Layer>& table) {
  table.add<Dense>("dense", DenseOptions::schema());
}

Configured<Layer> tied_dense(const ParameterSpec& embeddings, const ConfigNode& kind,
                             const ConfigNode& options, Diagnostics& diagnostics) {
  TiedDenseOptions read;
  const auto& schema = TiedDenseOptions::schema();
  if (schema.read(options, "dense with the weights of an embedding", read, diagnostics) == Reading::wrong)
    return {};
  return {kind.text(), std::make_shared<const TiedDense>(read, embeddings),
          resolved_kind(kind.text(), kind.mark(), schema.write(read))};
}

}  // namespace dtrain
