#include "data/augment/warp_augmentation.h"

namespace dtrain {

namespace {

struct RandomTranslationOptions : WarpOptions {
  UniformRange height_factor, width_factor;

  AffineMap draw(const PictureShape& shape, Draws& draws) const {
    const double down = draws.uniform(height_factor.lower, height_factor.upper);
    const double right = draws.uniform(width_factor.lower, width_factor.upper);
    return translation(shape, down, right);
  }
};

}  // namespace

void add_random_translation(Registry<Augmentation>& table) {
  using Options = RandomTranslationOptions;
  Schema<Options> schema("Shifts each image.");
  schema.example("{height_factor: 0.1, width_factor: 0.1}");
  schema
      .required("height_factor", &Options::height_factor,
                "range from which the vertical shift is drawn, as a fraction of the height; positive values "
                "shift down. A number f means [-f, f]",
                range_within(-1, 1))
      .required("width_factor", &Options::width_factor,
                "range from which the horizontal shift is drawn, as a fraction of the width; positive values "
                "shift to the right. A number f means [-f, f]",
                range_within(-1, 1));
  add_warp_options(schema);
  table.add<WarpAugmentation<Options>>("random_translation", schema);
}

}  // namespace dtrain
