#include <algorithm>

#include "config/or_auto.h"
#include "nn/layers/activations/activation.h"
#include "nn/layers/common.h"
#include "nn/layers/table.h"
#include "nn/layers/weight_options.h"

namespace dtrain {
namespace {

struct DenseOptions {
  OrAuto<int64_t> units;
  OptionalActivation activation;
  bool use_bias = true;
  WeightOptions kernel{registry<Initializer>().make("glorot_uniform")};
  WeightOptions bias{registry<Initializer>().make("zeros")};

  static const Schema<DenseOptions>& schema() {
    using O = DenseOptions;
    static const auto schema =
        Schema<O>("Fully connected: activation(x kernel + bias), over the last axis.")
            .example("{units: 64, activation: relu}")
            .required("units", &O::units,
                      "size of the output's last axis; `auto`, in the layer of an output of the model: "
                      "the number of classes, or the width of the target, in the training split",
                      or_auto(extent()))
            .optional("activation", &O::activation, "activation function of the output")
            .optional("use_bias", &O::use_bias, "add a bias")
            .part("kernel_", &O::kernel, weight_schema("the [inputs, units] kernel"))
            .part("bias_", &O::bias, weight_schema("the bias"))
            .details({"activation", "use_bias"});
    return schema;
  }
};

class PreparedDense : public PreparedLayer {
 public:
  PreparedDense(const LayerRequest& request, bool use_bias) : use_bias_(use_bias) {
    Ops& ops = request.ops;
    const int64_t inputs = request.inputs[0].shape.back(), units = request.output().shape.back();
    const int64_t rows = batch_elements(request, request.output().shape) / units;
    forward_ =
        ops.matmul({.m = rows, .n = units, .k = inputs, .bias = use_bias, .activation = request.activation});
    requirements_.scratch_bytes = forward_->scratch_bytes();
    if (request.training && request.input_needs_gradient[0]) {
      by_input_ = ops.matmul({.m = rows, .n = inputs, .k = units, .transpose_b = true, .activation = {}});
      requirements_.scratch_bytes = std::max(requirements_.scratch_bytes, by_input_->scratch_bytes());
    }
    if (trains_parameters(request)) {
      by_kernel_ = ops.matmul({.m = inputs,
                               .n = units,
                               .k = rows,
                               .transpose_a = true,
                               .float32_result = true,
                               .activation = {}});
      requirements_.scratch_bytes = std::max(requirements_.scratch_bytes, by_kernel_->scratch_bytes());
      requirements_.backward_reads_inputs = true;
      if (use_bias) requirements_.bias = 1;
    }
  }

  void forward(const LayerArguments& args) override {
    forward_->run(args.input(), args.weights[0], use_bias_ ? args.weights[1] : nullptr, args.output(),
                  args.scratch);
  }

  void backward(const LayerArguments& args) override {
    if (by_kernel_)
      by_kernel_->run(args.input(), args.diff_output(), nullptr, args.diff_parameters[0], args.scratch);
    if (by_input_)
      by_input_->run(args.diff_output(), args.weights[0], nullptr, args.diff_inputs[0], args.scratch);
  }

 private:
  bool use_bias_;
  std::unique_ptr<Matmul> forward_, by_input_, by_kernel_;
};

class Dense : public LayerWith<DenseOptions> {
 public:
  using LayerWith::LayerWith;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs,
                                const ReportError& report_error) const override {
    const TensorSpec* input = float_input_with_axis(inputs, "of features", report_error);
    if (!input) return {};
    TensorSpec output{{}, input->shape, DType::float32};
    output.shape[output.shape.rank() - 1] = units();
    return {output};
  }

  std::vector<ParameterSpec> parameters(std::span<const TensorSpec> inputs) const override {
    std::vector<ParameterSpec> specs = {
        options_.kernel.parameter("kernel", {inputs[0].shape.back(), units()})};
    if (options_.use_bias) specs.push_back(options_.bias.parameter("bias", {units()}));
    return specs;
  }

  MaskRule mask_rule() const override { return MaskRule::passed; }

  std::unique_ptr<PreparedLayer> prepare(const LayerRequest& request) const override {
    return std::make_unique<PreparedDense>(request, options_.use_bias);
  }

  ConfigNode open_units() const override { return options_.units.written; }
  Configured<Layer> activation() const override { return activation_layer(options_.activation); }
  bool can_fuse(const ActivationSpec& spec) const override { return from_output(spec); }

 private:
  int64_t units() const { return *options_.units.value; }
};

}  // namespace

void add_dense(Registry<Layer>& table) {
  table.add<Dense>("dense", DenseOptions::schema());
}

}  // namespace dtrain
