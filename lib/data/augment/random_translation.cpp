#include "data/augment/options.h"
#include "data/augment/warp.h"

namespace dtrain {

namespace {

struct RandomTranslationOptions : WarpOptions {
  UniformRange height_factor, width_factor;
};

class RandomTranslation final : public Augmentation {
 public:
  explicit RandomTranslation(const RandomTranslationOptions& options) : options_(options) {}

  void apply(ColumnPlan& plan, uint32_t stream) const override {
    add_float_pass(
        plan, stream,
        [options = options_](const float* src, const PictureShape& shape, Draws& draws, float* dst) {
          const double down = draws.uniform(options.height_factor.lower, options.height_factor.upper);
          const double right = draws.uniform(options.width_factor.lower, options.width_factor.upper);
          warp(src, shape, translation(shape, down, right), options, dst);
        });
  }

 private:
  RandomTranslationOptions options_;
};

}  // namespace

void add_random_translation(Registry<Augmentation>& table) {
  using Options = RandomTranslationOptions;
  Schema<Options> schema("Shifts each image.");
  schema.example("{height_factor: 0.1, width_factor: 0.1}");
  schema
      .required("height_factor", &Options::height_factor,
                "the range of the shift down, as a fraction of the height; a number f means [-f, f]",
                range_within(-1, 1))
      .required("width_factor", &Options::width_factor,
                "the range of the shift to the right, as a fraction of the width; a number f means [-f, f]",
                range_within(-1, 1));
  add_warp_options(schema);
  table.add<RandomTranslation>("random_translation", schema);
}

}  // namespace dtrain
