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
                "range from which the relative change of the height is drawn. Positive values zoom out, "
                "negative values zoom in. A number f means [-f, f]",
                range_within(-1, 1))
      .optional("width_factor", &Options::width_factor,
                "range from which the relative change of the width is drawn. Default: the width changes by "
                "the same factor as the height, so the aspect ratio is kept",
                range_within<std::optional<UniformRange>>(-1, 1));
  add_warp_options(schema);
  table.add<WarpAugmentation<Options>>("random_zoom", schema);
}

}  // namespace dtrain
