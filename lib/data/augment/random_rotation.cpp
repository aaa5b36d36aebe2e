#include "data/augment/warp_augmentation.h"

namespace dtrain {

namespace {

struct RandomRotationOptions : WarpOptions {
  UniformRange factor;

  AffineMap draw(const PictureShape& shape, Draws& draws) const {
    return rotation(shape, kTwoPi * draws.uniform(factor.lower, factor.upper));
  }
};

/// Returns the check for the range of angles. The message gives an example in degrees because most other
/// tools use degrees.
Check<UniformRange> turns() {
  Check<UniformRange> check = range_within(-1, 1);
  check.expected = "fractions of a full turn from -1 to 1, as in Keras (15 degrees are 0.042)";
  return check;
}

}  // namespace

void add_random_rotation(Registry<Augmentation>& table) {
  using Options = RandomRotationOptions;
  Schema<Options> schema("Rotates each image about its center.");
  schema.example("{factor: 0.05}");
  schema.required("factor", &Options::factor,
                  "range from which the angle is drawn, as a fraction of a full turn. A number f means [-f, "
                  "f]. Example: 0.042 means from -15 to 15 degrees",
                  turns());
  add_warp_options(schema);
  table.add<WarpAugmentation<Options>>("random_rotation", schema);
}

}  // namespace dtrain
