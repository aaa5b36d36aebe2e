#include "data/augment/warp_augmentation.h"

namespace dtrain {

namespace {

struct RandomZoomOptions : WarpOptions {
  UniformRange height_factor;
  std::optional<UniformRange> width_factor;

  AffineMap draw(const PictureShape& shape, Draws& draws) const {
    const double height = draws.uniform(height_factor.lower, height_factor.upper);
    const double width = width_factor ? draws.uniform(width_factor->lower, width_factor->upper) : height;
    return zoom(shape, height, width);
  }
};

}  // namespace

void add_random_zoom(Registry<Augmentation>& table) {
  using Options = RandomZoomOptions;
  Schema<Options> schema("Zooms each image in or out.");
  schema.example("{height_factor: 0.2}");
  schema
      .required("height_factor", &Options::height_factor,
                "range of the relative change in height: positive zooms out, negative zooms in; a number f "
                "means [-f, f]",
                range_within(-1, 1))
      .optional("width_factor", &Options::width_factor,
                "range of the relative change in width; default: the width changes like the height, so that "
                "proportions are kept",
                range_within<std::optional<UniformRange>>(-1, 1));
  add_warp_options(schema);
  table.add<WarpAugmentation<Options>>("random_zoom", schema);
}

}  // namespace dtrain
