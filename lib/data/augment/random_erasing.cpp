#include <algorithm>
#include <cmath>

#include "data/augment/options.h"
#include "data/augment/picture_stage.h"

namespace dtrain {

namespace {

struct RandomErasingOptions {
  double factor = 1;
  std::vector<double> scale{0.02, 0.33};
  std::optional<double> fill_value;
  ValueRange value_range{0, 255};
};

class RandomErasing final : public Augmentation {
 public:
  explicit RandomErasing(const RandomErasingOptions& options) : options_(options) {}

  void apply(ColumnPlan& plan, uint32_t stream) const override {
    add_float_pass(
        plan, stream,
        [options = options_](const float* src, const PictureShape& shape, Draws& draws, float* dst) {
          std::copy_n(src, shape.elements(), dst);
          // As in Keras, the probability of erasing is itself random: it is drawn between 0 and the factor.
          const double probability = draws.uniform(0, options.factor);
          if (static_cast<double>(draws.uniform()) < probability) erase(options, shape, draws, dst);
        });
  }

 private:
  /// Draws the interval of pixels [first, second) that is erased along one axis. `extent` is the length of
  /// the axis.
  static std::pair<int64_t, int64_t> stretch(const RandomErasingOptions& options, int64_t extent,
                                             Draws& draws) {
    const auto whole = static_cast<double>(extent);
    const double length = std::sqrt(draws.uniform(options.scale[0], options.scale[1])) * whole;
    const double first = draws.uniform(0, whole - length);
    return {static_cast<int64_t>(std::ceil(first)),
            std::min(extent, static_cast<int64_t>(std::ceil(first + length)))};
  }

  static void erase(const RandomErasingOptions& options, const PictureShape& shape, Draws& draws,
                    float* dst) {
    const auto [left, right] = stretch(options, shape.width, draws);
    const auto [top, bottom] = stretch(options, shape.height, draws);
    const double least = options.value_range[0], most = options.value_range[1];
    for (int64_t y = top; y < bottom; ++y)
      for (int64_t i = left * shape.channels; i < right * shape.channels; ++i)
        dst[y * shape.row_elements() + i] = static_cast<float>(
            std::clamp(options.fill_value ? *options.fill_value : draws.normal() * most, least, most));
  }

  RandomErasingOptions options_;
};

}  // namespace

void add_random_erasing(Registry<Augmentation>& table) {
  using Options = RandomErasingOptions;
  Schema<Options> schema("Replaces a rectangle of an image with noise or with one value.");
  schema.example("{factor: 1.0, scale: [0.02, 0.33]}");
  const Check<std::vector<double>> parts{
      "a range [least, most] with 0 < least <= most <= 1",
      [](const auto& s) { return s.size() == 2 && s[0] > 0 && s[0] <= s[1] && s[1] <= 1; },
      Json::object().set("minItems", 2).set("maxItems", 2)};
  schema
      .optional("factor", &Options::factor,
                "maximum probability that a rectangle of an image is replaced. The probability for each "
                "image is drawn between 0 and this value",
                between<double>(0, 1))
      .optional("scale", &Options::scale,
                "range [minimum, maximum] of the rectangle's area, as a fraction of the image's area. For "
                "each axis, a fraction is drawn from this range. The length of the rectangle along this axis "
                "is the square root of the fraction times the length of the image",
                parts)
      .optional("fill_value", &Options::fill_value,
                "value of the pixels in the rectangle; default: normally distributed noise")
      .optional("value_range", &Options::value_range,
                "the range [minimum, maximum] of the values of an image. The noise or the value is clipped "
                "to this range",
                two_ascending());
  table.add<RandomErasing>("random_erasing", schema);
}

}  // namespace dtrain
