#include "nn/layers/common.h"
#include "nn/layers/table.h"

namespace dtrain {
namespace {

struct LayerNormalizationOptions {
  double epsilon = 1e-3;
  bool center = true;
  bool scale = true;
  Configured<Initializer> beta_initializer = registry<Initializer>().make("zeros");
  Configured<Initializer> gamma_initializer = registry<Initializer>().make("ones");

  static const Schema<LayerNormalizationOptions>& schema() {
    using O = LayerNormalizationOptions;
    static const auto schema =
        Schema<O>(
            "Normalizes each row along the last axis to mean 0 and variance 1, then scales and shifts it.")
            .optional("epsilon", &O::epsilon, "added to the variance", greater_than(0.0))
            .optional("center", &O::center, "shift by a trained beta")
            .optional("scale", &O::scale, "scale by a trained gamma")
            .optional("beta_initializer", &O::beta_initializer, "initial values of beta")
            .optional("gamma_initializer", &O::gamma_initializer, "initial values of gamma")
            .details({"epsilon", "center", "scale", "beta_initializer", "gamma_initializer"});
    return schema;
  }
};

/// The saved memory holds the mean of every row, then the inverse standard deviation of every row.
class PreparedLayerNormalization : public PreparedLayer {
 public:
  PreparedLayerNormalization(const LayerRequest& request, const LayerNormalizationOptions& options)
      : ops_(request.ops),
        training_(request.training),
        epsilon_(static_cast<float>(options.epsilon)),
        scale_(options.scale),
        center_(options.center),
        columns_(request.output().shape.back()),
        rows_(batch_elements(request, request.output().shape) / columns_) {
    const size_t statistics = 2 * static_cast<size_t>(rows_) * sizeof(float);
    requirements_.saved_bytes = request.training ? statistics : 0;
    if (!request.training) {
      requirements_.scratch_bytes = statistics;
    } else if (!request.input_needs_gradient[0]) {
      // The op always computes the gradient of its source, which is not needed here.
      requirements_.scratch_bytes = static_cast<size_t>(rows_ * columns_) * bytes_of(ops_.compute_type());
    }
    requirements_.backward_in_place = true;
    requirements_.backward_reads_inputs = request.training;
  }

  void forward(const LayerArguments& args) override {
    auto* statistics = static_cast<float*>(training_ ? args.saved : args.scratch);
    ops_.layer_normalization_forward({.src = args.input(),
                                      .gamma = gamma(args.parameters),
                                      .beta = beta(args.parameters),
                                      .epsilon = epsilon_,
                                      .dst = args.output(),
                                      .mean = statistics,
                                      .inverse_deviation = statistics + rows_,
                                      .rows = rows_,
                                      .columns = columns_});
  }

  void backward(const LayerArguments& args) override {
    const auto* statistics = static_cast<const float*>(args.saved);
    ops_.layer_normalization_backward({.src = args.input(),
                                       .gamma = gamma(args.parameters),
                                       .mean = statistics,
                                       .inverse_deviation = statistics + rows_,
                                       .diff_dst = args.diff_output(),
                                       .diff_src = args.diff_inputs[0] ? args.diff_inputs[0] : args.scratch,
                                       .diff_gamma = gamma(args.diff_parameters),
                                       .diff_beta = beta(args.diff_parameters),
                                       .rows = rows_,
                                       .columns = columns_});
  }

 private:
  template <class Pointer>
  Pointer gamma(const std::vector<Pointer>& parameters) const {
    return scale_ ? parameters[0] : nullptr;
  }
  template <class Pointer>
  Pointer beta(const std::vector<Pointer>& parameters) const {
    return center_ ? parameters[scale_ ? 1 : 0] : nullptr;
  }

  Ops& ops_;
  bool training_;
  float epsilon_;
  bool scale_, center_;
  int64_t columns_, rows_;
};

class LayerNormalization : public LayerWith<LayerNormalizationOptions> {
 public:
  using LayerWith::LayerWith;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs,
                                const ReportError& report_error) const override {
    return same_as(float_input_with_axis(inputs, "to normalise over", report_error));
  }

  std::vector<ParameterSpec> parameters(std::span<const TensorSpec> inputs) const override {
    const Shape columns{inputs[0].shape.back()};
    std::vector<ParameterSpec> specs;
    if (options_.scale) specs.push_back({"gamma", columns, options_.gamma_initializer, {}});
    if (options_.center) specs.push_back({"beta", columns, options_.beta_initializer, {}});
    return specs;
  }

  std::unique_ptr<PreparedLayer> prepare(const LayerRequest& request) const override {
    return std::make_unique<PreparedLayerNormalization>(request, options_);
  }
};

}  // namespace

void add_layer_normalization(Registry<Layer>& table) {
  table.add<LayerNormalization>("layer_normalization", LayerNormalizationOptions::schema());
}

}  // namespace dtrain
