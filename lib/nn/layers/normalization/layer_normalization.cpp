#include "nn/layers/normalization/scale_and_shift.h"
#include "nn/layers/table.h"

namespace dtrain {
namespace {

struct LayerNormalizationOptions : ScaleAndShift {
  double epsilon = 1e-3;

  static const Schema<LayerNormalizationOptions>& schema() {
    using O = LayerNormalizationOptions;
    static const auto schema =
        with_scale_and_shift(
            Schema<O>("Normalizes each row (the last axis of the input) to mean 0 and variance 1, then "
                      "scales and shifts it.")
                .optional("epsilon", &O::epsilon,
                          "small number that is added to the variance to avoid division by 0",
                          greater_than(0.0)))
            .details({"epsilon", "center", "scale"});
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
        scale_and_shift_(options),
        columns_(request.output().shape.back()),
        rows_(batch_elements(request, request.output().shape) / columns_) {
    const size_t statistics = 2 * static_cast<size_t>(rows_) * sizeof(float);
    requirements_.saved_bytes = request.training ? statistics : 0;
    if (!request.training) {
      requirements_.scratch_bytes = statistics;
    } else if (!request.input_needs_gradient[0]) {
      // The operation always computes the gradient of its source. Here this gradient is not needed, so it is
      // written to scratch memory.
      requirements_.scratch_bytes = static_cast<size_t>(rows_ * columns_) * bytes_of(ops_.compute_type());
    }
    requirements_.backward_in_place = true;
    requirements_.backward_reads_inputs = request.training;
  }

  void forward(const LayerArguments& args) override {
    auto* statistics = static_cast<float*>(training_ ? args.saved : args.scratch);
    ops_.layer_normalization_forward({.src = args.input(),
                                      .gamma = scale_and_shift_.gamma_of(args.parameters),
                                      .beta = scale_and_shift_.beta_of(args.parameters),
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
                                       .gamma = scale_and_shift_.gamma_of(args.parameters),
                                       .mean = statistics,
                                       .inverse_deviation = statistics + rows_,
                                       .diff_dst = args.diff_output(),
                                       .diff_src = args.diff_inputs[0] ? args.diff_inputs[0] : args.scratch,
                                       .diff_gamma = scale_and_shift_.gamma_of(args.diff_parameters),
                                       .diff_beta = scale_and_shift_.beta_of(args.diff_parameters),
                                       .rows = rows_,
                                       .columns = columns_});
  }

 private:
  Ops& ops_;
  bool training_;
  float epsilon_;
  ScaleAndShift scale_and_shift_;
  int64_t columns_, rows_;
};

class LayerNormalization : public LayerWith<LayerNormalizationOptions> {
 public:
  using LayerWith::LayerWith;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs,
                                const ReportError& report_error) const override {
    return same_as(float_input_with_axis(inputs, "to normalize over", report_error));
  }

  std::vector<ParameterSpec> parameters(std::span<const TensorSpec> inputs) const override {
    return options_.parameters({inputs[0].shape.back()});
  }

  MaskRule mask_rule() const override { return MaskRule::passed; }

  std::unique_ptr<PreparedLayer> prepare(const LayerRequest& request) const override {
    return std::make_unique<PreparedLayerNormalization>(request, options_);
  }
};

}  // namespace

void add_layer_normalization(Registry<Layer>& table) {
  table.add<LayerNormalization>("layer_normalization", LayerNormalizationOptions::schema());
}

}  // namespace dtrain
