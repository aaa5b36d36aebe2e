#include <algorithm>
#include <cmath>

#include "nn/initializers/draws.h"
#include "nn/initializers/table.h"
#include "nn/no_options.h"

namespace dtrain {
namespace {

enum class FanMode { fan_in, fan_out, fan_avg };
enum class Distribution { truncated_normal, untruncated_normal, uniform };

struct ScalingOptions {
  double scale = 1;
  FanMode mode = FanMode::fan_in;
  Distribution distribution = Distribution::truncated_normal;
};

/// The standard deviation of a standard normal distribution that is truncated at two standard deviations. As
/// in Keras, the truncated normal initializer divides its standard deviation by this number, so that the
/// truncated values have the requested standard deviation.
constexpr double kTruncatedDeviation = 0.87962566103423978;

/// Keras's VarianceScaling. A variance of scale / fan keeps the magnitude of activations equal across layers.
class VarianceScaling : public Initializer {
 public:
  explicit VarianceScaling(const ScalingOptions& options) : options_(options) {}

  void fill(float* values, const Shape& shape, const Philox& random) const override {
    const double variance = options_.scale / std::max(1.0, fan(shape));
    const int64_t n = shape.elements();
    switch (options_.distribution) {
      case Distribution::truncated_normal:
        draw_truncated_normal(values, n, 0, std::sqrt(variance) / kTruncatedDeviation, random);
        break;
      case Distribution::untruncated_normal:
        draw_normal(values, n, 0, std::sqrt(variance), random);
        break;
      case Distribution::uniform:
        draw_uniform(values, n, -std::sqrt(3 * variance), std::sqrt(3 * variance), random);
        break;
    }
  }

 private:
  double fan(const Shape& shape) const {
    const Fans fans = fans_of(shape);
    switch (options_.mode) {
      case FanMode::fan_in:
        return fans.in;
      case FanMode::fan_out:
        return fans.out;
      case FanMode::fan_avg:
        break;
    }
    return (fans.in + fans.out) / 2;
  }

  ScalingOptions options_;
};

}  // namespace

template <>
inline const EnumNames<FanMode> names_of<FanMode> = {
    {FanMode::fan_in, "fan_in"}, {FanMode::fan_out, "fan_out"}, {FanMode::fan_avg, "fan_avg"}};
template <>
inline const EnumNames<Distribution> names_of<Distribution> = {
    {Distribution::truncated_normal, "truncated_normal"},
    {Distribution::untruncated_normal, "untruncated_normal"},
    {Distribution::uniform, "uniform"}};

Fans fans_of(const Shape& shape) {
  if (shape.rank() == 0) return {1, 1};
  if (shape.rank() == 1) return {static_cast<double>(shape[0]), static_cast<double>(shape[0])};
  double field = 1;
  for (size_t axis = 0; axis + 2 < shape.rank(); ++axis) field *= static_cast<double>(shape[axis]);
  return {field * static_cast<double>(shape[shape.rank() - 2]), field * static_cast<double>(shape.back())};
}

void add_variance_scaling(Registry<Initializer>& table) {
  table.add<VarianceScaling>(
      "variance_scaling",
      Schema<ScalingOptions>("Random numbers with mean 0 and variance scale / fan. Here fan is the number of "
                             "inputs or outputs of the weight (see mode).")
          .example("{scale: 2, mode: fan_out, distribution: truncated_normal}")
          .optional("scale", &ScalingOptions::scale, "numerator of the variance, which is scale / fan",
                    greater_than(0.0))
          .optional("mode", &ScalingOptions::mode,
                    "Meaning of fan: the number of inputs (`fan_in`), the number of outputs (`fan_out`), or "
                    "the mean of both numbers (`fan_avg`).")
          .optional("distribution", &ScalingOptions::distribution, "distribution of the random numbers"));
  const auto named = [&table](const std::string& name, double scale, FanMode mode,
                              const std::string& variance) {
    const auto add = [&](const std::string& suffix, Distribution distribution, const std::string& kind) {
      table.add_with(
          name + suffix,
          Schema<NoOptions>("Random numbers from a " + kind + " distribution with mean 0 and variance " +
                            variance + "."),
          [=](const NoOptions&, const ConfigNode&) -> std::shared_ptr<const Initializer> {
            return std::make_shared<const VarianceScaling>(ScalingOptions{scale, mode, distribution});
          });
    };
    add("_uniform", Distribution::uniform, "uniform");
    add("_normal", Distribution::truncated_normal, "truncated normal");
  };
  named("glorot", 1, FanMode::fan_avg, "2 / (fan_in + fan_out) (Glorot and Bengio 2010)");
  named("he", 2, FanMode::fan_in, "2 / fan_in (He et al. 2015)");
  named("lecun", 1, FanMode::fan_in, "1 / fan_in (LeCun et al. 1998)");
}

}  // namespace dtrain
