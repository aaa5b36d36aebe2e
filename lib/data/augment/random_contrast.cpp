#include "data/augment/color_ops.h"
#include "data/augment/options.h"

namespace dtrain {

namespace {

struct RandomContrastOptions {
  UniformRange factor;
  ValueRange value_range{0, 255};
};

class RandomContrast final : public Augmentation {
 public:
  explicit RandomContrast(const RandomContrastOptions& options) : options_(options) {}

  void apply(ColumnPlan& plan, uint32_t stream) const override {
    const auto least = static_cast<float>(options_.value_range[0]),
               most = static_cast<float>(options_.value_range[1]);
    // As in Keras, [lower, upper] means a factor from 1 - lower to 1 + upper, and a single number f means a
    // factor from 1 - f to 1 + f. UniformRange stores a single number f as [-f, f], so a negative lower limit
    // means that a single number was given.
    const double low = options_.factor.lower < 0 ? 1 + options_.factor.lower : 1 - options_.factor.lower;
    const double high = 1 + options_.factor.upper;
    add_float_pass(plan, stream, [=](const float* src, const PictureShape& shape, Draws& draws, float* dst) {
      change_contrast(src, shape, static_cast<float>(draws.uniform(low, high)), least, most, dst);
    });
  }

 private:
  RandomContrastOptions options_;
};

}  // namespace

void add_random_contrast(Registry<Augmentation>& table) {
  using Options = RandomContrastOptions;
  Schema<Options> schema(
      "Changes the contrast of each image: the difference between each value and the mean of its channel is "
      "multiplied by a random factor. One factor is drawn for each image.");
  schema.example("{factor: 0.2}");
  schema
      .required("factor", &Options::factor,
                "range from which the factor is drawn. A number f means from 1 - f to 1 + f; [lower, upper] "
                "means from 1 - lower to 1 + upper",
                range_within(-1, 1))
      .optional(
          "value_range", &Options::value_range,
          "the range [minimum, maximum] of the values of an image. The results are clipped to this range",
          two_ascending());
  table.add<RandomContrast>("random_contrast", schema);
}

}  // namespace dtrain
