#include "data/augment/options.h"
#include "data/augment/warp.h"

namespace dtrain {

namespace {

struct RandomZoomOptions : WarpOptions {
  UniformRange height_factor;
  std::optional<UniformRange> width_factor;
};

class RandomZoom final : public Augmentation {
 public:
  explicit RandomZoom(const RandomZoomOptions& options) : options_(options) {}

  void apply(ColumnPlan& plan, uint32_t stream) const override {
    add_float_pass(
        plan, stream,
        [options = options_](const float* src, const PictureShape& shape, Draws& draws, float* dst) {
          const double height = draws.uniform(options.height_factor.lower, options.height_factor.upper);
          const double width = options.width_factor
                                   ? draws.uniform(options.width_factor->lower, options.width_factor->upper)
                                   : height;
          warp(src, shape, zoom(shape, height, width), options, dst);
        });
  }

 private:
  RandomZoomOptions options_;
};

}  // namespace

void add_random_zoom(Registry<Augmentation>& table) {
  using Options = RandomZoomOptions;
  Schema<Options> schema("Zooms each image in or out.");
  schema.example("{height_factor: 0.2}");
  schema
      .required("height_factor", &Options::height_factor,
                "the range of the relative change in height: positive zooms out, negative zooms in; a number "
                "f means [-f, f]",
                range_within(-1, 1))
      .optional("width_factor", &Options::width_factor,
                "the same for the width; if not given, it is the change in height, which keeps proportions",
                range_within<std::optional<UniformRange>>(-1, 1));
  add_warp_options(schema);
  table.add<RandomZoom>("random_zoom", schema);
}

}  // namespace dtrain
