// Dropout of whole channels: spatial_dropout1d and spatial_dropout2d.
#include <string>

#include <fmt/format.h>

#include "nn/layers/regularization/random.h"
#include "nn/layers/table.h"

namespace dtrain {
namespace {

struct SpatialDropoutOptions {
  double rate = 0;

  /// `what` describes the accepted inputs, for the documentation.
  static Schema<SpatialDropoutOptions> schema(const std::string& what) {
    return Schema<SpatialDropoutOptions>(
               fmt::format("In training, sets randomly chosen channels of {} to 0 and divides the other "
                           "channels by 1 - rate. Evaluation and prediction do not change the input.",
                           what))
        .example("{rate: 0.5}")
        .required("rate", &SpatialDropoutOptions::rate, "fraction of the channels that are set to 0",
                  between_excluding_high(0.0, 1.0))
        .details({"rate"});
  }
};

class PreparedSpatialDropout : public PreparedRandom {
 public:
  PreparedSpatialDropout(const LayerRequest& request, float rate)
      : PreparedRandom(request, rate == 0),
        rate_(rate),
        channels_(request.output().shape.back()),
        pixels_(request.output().shape.elements() / channels_) {}

 private:
  void apply(const LayerArguments& args, const Philox& random, const void* src, void* dst) override {
    ops_.spatial_dropout(dst, src, rate_, random, args.step, args.first_sample, samples_, pixels_, channels_);
  }

  float rate_;
  int64_t channels_, pixels_;
};

/// `kAxes` is the number of axes that an input must have. The last axis is the channels.
template <size_t kAxes>
class SpatialDropout : public LayerWith<SpatialDropoutOptions> {
 public:
  using LayerWith::LayerWith;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs,
                                const ReportError& report_error) const override {
    if constexpr (kAxes == 3) return same_as(image_input(inputs, report_error));
    const TensorSpec* input = float_input(inputs, report_error);
    if (!input || input->shape.rank() == kAxes) return same_as(input);
    report_error(fmt::format("expected sequences of shape [length, channels], but '{}' has the shape {}",
                             input->name, input->shape.str()));
    return {};
  }

  MaskRule mask_rule() const override { return MaskRule::passed; }
  bool can_penalize_output() const override { return false; }  // Keras's class has no activity_regularizer

  std::unique_ptr<PreparedLayer> prepare(const LayerRequest& request) const override {
    return std::make_unique<PreparedSpatialDropout>(request, static_cast<float>(options_.rate));
  }
};

}  // namespace

void add_spatial_dropout(Registry<Layer>& table) {
  table.add<SpatialDropout<2>>("spatial_dropout1d", SpatialDropoutOptions::schema("a sequence"));
  table.add<SpatialDropout<3>>("spatial_dropout2d", SpatialDropoutOptions::schema("an image"));
}

}  // namespace dtrain
