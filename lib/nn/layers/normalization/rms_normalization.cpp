// rms_normalization and unit_normalization. Both multiply each row by the inverse of a norm of the row.
#include "nn/layers/common.h"
#include "nn/layers/table.h"
#include "nn/no_options.h"

namespace dtrain {
namespace {

struct RmsNormalizationOptions {
  double epsilon = 1e-6;

  static const Schema<RmsNormalizationOptions>& schema() {
    using O = RmsNormalizationOptions;
    static const auto schema =
        Schema<O>(
            "Divides each row (the last axis of the input) by its root mean square, then multiplies it by a "
            "trained scale.")
            .optional("epsilon", &O::epsilon,
                      "small number that is added to the mean square to avoid division by 0",
                      greater_than(0.0))
            .details({"epsilon"});
    return schema;
  }
};

/// The saved memory holds the factor by which each row was multiplied.
class PreparedRmsNormalization : public PreparedLayer {
 public:
  PreparedRmsNormalization(const LayerRequest& request, const math::InverseNorm& norm)
      : ops_(request.ops),
        norm_(norm),
        training_(request.training),
        columns_(request.output().shape.back()),
        rows_(batch_elements(request, request.output().shape) / columns_) {
    const size_t factors = static_cast<size_t>(rows_) * sizeof(float);
    (request.training ? requirements_.saved_bytes : requirements_.scratch_bytes) = factors;
    requirements_.backward_in_place = true;
    requirements_.backward_reads_inputs = request.training;
  }

  void forward(const LayerArguments& args) override {
    ops_.rms_normalization_forward({.src = args.input(),
                                    .scale = scale(args.parameters),
                                    .norm = norm_,
                                    .dst = args.output(),
                                    .inverse = static_cast<float*>(training_ ? args.saved : args.scratch),
                                    .rows = rows_,
                                    .columns = columns_});
  }

  void backward(const LayerArguments& args) override {
    ops_.rms_normalization_backward({.src = args.input(),
                                     .scale = scale(args.parameters),
                                     .norm = norm_,
                                     .inverse = static_cast<const float*>(args.saved),
                                     .diff_dst = args.diff_output(),
                                     .diff_src = args.diff_inputs[0],
                                     .diff_scale = scale(args.diff_parameters),
                                     .rows = rows_,
                                     .columns = columns_});
  }

 private:
  template <class Pointer>
  static Pointer scale(const std::vector<Pointer>& parameters) {
    return parameters.empty() ? nullptr : parameters[0];
  }

  Ops& ops_;
  math::InverseNorm norm_;
  bool training_;
  int64_t columns_, rows_;
};

class RmsNormalization : public LayerWith<RmsNormalizationOptions> {
 public:
  using LayerWith::LayerWith;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs,
                                const ReportError& report_error) const override {
    return same_as(float_input_with_axis(inputs, "to normalize over", report_error));
  }

  std::vector<ParameterSpec> parameters(std::span<const TensorSpec> inputs) const override {
    return {{"scale", Shape{inputs[0].shape.back()}, registry<Initializer>().make("ones"), {}}};
  }

  MaskRule mask_rule() const override { return MaskRule::passed; }

  std::unique_ptr<PreparedLayer> prepare(const LayerRequest& request) const override {
    const float share = 1.0f / static_cast<float>(request.output().shape.back());
    return std::make_unique<PreparedRmsNormalization>(
        request, math::InverseNorm{.share = share, .epsilon = static_cast<float>(options_.epsilon)});
  }
};

class UnitNormalization : public Layer {
 public:
  explicit UnitNormalization(const NoOptions&) {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs,
                                const ReportError& report_error) const override {
    return same_as(float_input_with_axis(inputs, "to normalize over", report_error));
  }

  MaskRule mask_rule() const override { return MaskRule::passed; }

  std::unique_ptr<PreparedLayer> prepare(const LayerRequest& request) const override {
    return std::make_unique<PreparedRmsNormalization>(request, math::InverseNorm{.limit = 1e12f});
  }
};

}  // namespace

void add_rms_normalization(Registry<Layer>& table) {
  table.add<RmsNormalization>("rms_normalization", RmsNormalizationOptions::schema());
  table.add<UnitNormalization>(
      "unit_normalization",
      Schema<NoOptions>("Divides each row (the last axis of the input) by its Euclidean norm. If the norm is "
                        "less than 1e-12, the row is divided by 1e-12.")
          .details({}));
}

}  // namespace dtrain
