#include <algorithm>

#include "data/augment/options.h"
#include "data/augment/picture_stage.h"

namespace dtrain {

namespace {

struct RandomBrightnessOptions {
  UniformRange factor;
  ValueRange value_range{0, 255};
};

class RandomBrightness final : public Augmentation {
 public:
  explicit RandomBrightness(const RandomBrightnessOptions& options) : options_(options) {}

  void apply(ColumnPlan& plan, uint32_t stream) const override {
    const auto least = static_cast<float>(options_.value_range[0]),
               most = static_cast<float>(options_.value_range[1]);
    add_float_pass(
        plan, stream,
        [=, factor = options_.factor](const float* src, const PictureShape& shape, Draws& draws, float* dst) {
          const float more = static_cast<float>(draws.uniform(factor.lower, factor.upper)) * (most - least);
          for (int64_t i = 0; i < shape.elements(); ++i) dst[i] = std::clamp(src[i] + more, least, most);
        });
  }

 private:
  RandomBrightnessOptions options_;
};

}  // namespace

void add_random_brightness(Registry<Augmentation>& table) {
  using Options = RandomBrightnessOptions;
  Schema<Options> schema("Adds a random number to all values of each image.");
  schema.example("{factor: 0.2}");
  schema
      .required("factor", &Options::factor,
                "range from which the number is drawn, as a fraction of the difference between the maximum "
                "and the minimum of value_range. A number f means [-f, f]",
                range_within(-1, 1))
      .optional(
          "value_range", &Options::value_range,
          "the range [minimum, maximum] of the values of an image. The results are clipped to this range",
          two_ascending());
  table.add<RandomBrightness>("random_brightness", schema);
}

}  // namespace dtrain
