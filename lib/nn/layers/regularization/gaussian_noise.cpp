// gaussian_noise and gaussian_dropout.
#include <cmath>

#include "nn/layers/regularization/random.h"
#include "nn/layers/table.h"

namespace dtrain {
namespace {

struct GaussianNoiseOptions {
  double stddev = 0;

  static const Schema<GaussianNoiseOptions>& schema() {
    static const auto schema = Schema<GaussianNoiseOptions>(
                                   "In training, adds normally distributed noise with mean 0. Evaluation and "
                                   "prediction do not change the input.")
                                   .example("{stddev: 0.1}")
                                   .required("stddev", &GaussianNoiseOptions::stddev,
                                             "standard deviation of the noise", between(0.0, 1.0))
                                   .details({"stddev"});
    return schema;
  }
};

struct GaussianDropoutOptions {
  double rate = 0;

  static const Schema<GaussianDropoutOptions>& schema() {
    static const auto schema =
        Schema<GaussianDropoutOptions>(
            "In training, multiplies each element by a normally distributed random number with mean 1. "
            "Evaluation and prediction do not change the input.")
            .example("{rate: 0.5}")
            .required(
                "rate", &GaussianDropoutOptions::rate,
                "Determines the variance of the random numbers, which is rate / (1 - rate). The factors "
                "of a dropout layer with the same rate have the same variance.",
                between_excluding_high(0.0, 1.0))
            .details({"rate"});
    return schema;
  }
};

class PreparedNoise : public PreparedRandom {
 public:
  PreparedNoise(const LayerRequest& request, const NoiseSpec& noise)
      : PreparedRandom(request, noise.deviation == 0),
        noise_(noise),
        per_sample_(request.output().shape.elements()) {
    requirements_.passes_gradient = !noise.multiplies;  // backward is then not called
  }

 private:
  void apply(const LayerArguments& args, const Philox& random, const void* src, void* dst) override {
    ops_.gaussian_noise(dst, src, noise_, random, args.step, args.first_sample, samples_, per_sample_);
  }

  NoiseSpec noise_;
  int64_t per_sample_;
};

class GaussianNoise : public SameShapeLayer<GaussianNoiseOptions> {
 public:
  using SameShapeLayer::SameShapeLayer;

  MaskRule mask_rule() const override { return MaskRule::passed; }

  std::unique_ptr<PreparedLayer> prepare(const LayerRequest& request) const override {
    return std::make_unique<PreparedNoise>(request,
                                           NoiseSpec{.deviation = static_cast<float>(options_.stddev)});
  }
};

class GaussianDropout : public SameShapeLayer<GaussianDropoutOptions> {
 public:
  using SameShapeLayer::SameShapeLayer;

  MaskRule mask_rule() const override { return MaskRule::passed; }

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
