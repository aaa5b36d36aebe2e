#include "data/augment/colour_ops.h"
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
    // As in Keras, [lower, upper] means a factor from 1 - lower to 1 + upper. UniformRange holds a single
    // number f as [-f, f], which means [f, f] here.
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
      "Multiplies each value's distance from its channel's mean by a random factor, one for each image.");
  schema.example("{factor: 0.2}");
  schema
      .required("factor", &Options::factor,
                "range of the random factor: a number f means from 1 - f to 1 + f, [lower, upper] means from "
                "1 - lower to 1 + upper",
                range_within(-1, 1))
      .optional("value_range", &Options::value_range,
                "the range [minimum, maximum] of the values of an image; results are clipped to it",
                two_ascending());
  table.add<RandomContrast>("random_contrast", schema);
}

}  // namespace dtrain
