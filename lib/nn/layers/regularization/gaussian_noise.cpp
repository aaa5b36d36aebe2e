// gaussian_noise and gaussian_dropout.
#include <cmath>

#include "nn/layers/common.h"
#include "nn/layers/table.h"

namespace dtrain {
namespace {

struct GaussianNoiseOptions {
  double stddev = 0;

  static const Schema<GaussianNoiseOptions>& schema() {
    static const auto schema =
        Schema<GaussianNoiseOptions>(
            "In training, adds normally distributed noise. Otherwise returns its input.")
            .example("{stddev: 0.1}")
            .required("stddev", &GaussianNoiseOptions::stddev, "the noise's standard deviation",
                      between(0.0, 1.0))
            .details({"stddev"});
    return schema;
  }
};

struct GaussianDropoutOptions {
  double rate = 0;

  static const Schema<GaussianDropoutOptions>& schema() {
    static const auto schema =
        Schema<GaussianDropoutOptions>(
            "In training, multiplies each element by a normally distributed number of mean 1. Otherwise "
            "returns its input.")
            .example("{rate: 0.5}")
            .required("rate", &GaussianDropoutOptions::rate,
                      "the variance is that of dropout with this rate, rate / (1 - rate)",
                      between_excluding_high(0.0, 1.0))
            .details({"rate"});
    return schema;
  }
};

/// The noise depends on the run's seed, the node, the step and the sample's index in the global batch, but
/// not on the replica.
class PreparedNoise : public PreparedLayer {
 public:
  PreparedNoise(const LayerRequest& request, const NoiseSpec& noise)
      : ops_(request.ops),
        noise_(noise),
        stream_(request.stream),
        samples_(request.batch),
        per_sample_(request.output().shape.elements()) {
    requirements_.is_view = !request.training || noise.deviation == 0;
    requirements_.passes_gradient = !noise.multiplies;
    requirements_.forward_in_place = true;
    requirements_.backward_in_place = true;
  }

  void forward(const LayerArguments& args) override { apply(args, args.input(), args.output()); }

  /// Called only if the noise is multiplied.
  void backward(const LayerArguments& args) override {
    if (args.diff_inputs[0]) apply(args, args.diff_output(), args.diff_inputs[0]);
  }

 private:
  void apply(const LayerArguments& args, const void* src, void* dst) {
    ops_.gaussian_noise(dst, src, noise_, Philox::of(args.seed, stream_), args.step, args.first_sample,
                        samples_, per_sample_);
  }

  Ops& ops_;
  NoiseSpec noise_;
  uint32_t stream_;
  int64_t samples_, per_sample_;
};

class GaussianNoise : public LayerWith<GaussianNoiseOptions> {
 public:
  using LayerWith::LayerWith;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs,
                                const ReportError& report_error) const override {
    return same_as(float_input(inputs, report_error));
  }

  std::unique_ptr<PreparedLayer> prepare(const LayerRequest& request) const override {
    return std::make_unique<PreparedNoise>(request,
                                           NoiseSpec{.deviation = static_cast<float>(options_.stddev)});
  }
};

class GaussianDropout : public LayerWith<GaussianDropoutOptions> {
 public:
  using LayerWith::LayerWith;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs,
                                const ReportError& report_error) const override {
    return same_as(float_input(inputs, report_error));
  }

  std::unique_ptr<PreparedLayer> prepare(const LayerRequest& request) const override {
    const double deviation = std::sqrt(options_.rate / (1 - options_.rate));
    return std::make_unique<PreparedNoise>(
        request, NoiseSpec{.multiplies = true, .deviation = static_cast<float>(deviation)});
  }
};

}  // namespace

void add_gaussian_noise(Registry<Layer>& table) {
  table.add<GaussianNoise>("gaussian_noise", GaussianNoiseOptions::schema());
  table.add<GaussianDropout>("gaussian_dropout", GaussianDropoutOptions::schema());
}

}  // namespace dtrain
