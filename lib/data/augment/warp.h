// Pictures seen through an affine map, as Keras's affine_transform.
#pragma once

#include "config/codec.h"
#include "data/augment/picture_stage.h"

namespace dtrain {

/// What is beyond a picture's edges: (d c b a | a b c d | d c b a), (a b c d | a b c d | a b c d), a number,
/// or the nearest pixel.
enum class FillMode { reflect, wrap, constant, nearest };
enum class Interpolation { bilinear, nearest };

template <>
inline const EnumNames<FillMode> names_of<FillMode> = {{FillMode::reflect, "reflect"},
                                                       {FillMode::wrap, "wrap"},
                                                       {FillMode::constant, "constant"},
                                                       {FillMode::nearest, "nearest"}};
template <>
inline const EnumNames<Interpolation> names_of<Interpolation> = {{Interpolation::bilinear, "bilinear"},
                                                                 {Interpolation::nearest, "nearest"}};

/// Pixel (x, y) of the result is the old picture's at (a x + b y + c, d x + e y + f).
struct AffineMap {
  double a = 1, b = 0, c = 0, d = 0, e = 1, f = 0;
};

struct WarpOptions {
  FillMode fill_mode = FillMode::reflect;
  Interpolation interpolation = Interpolation::bilinear;
  double fill_value = 0;
};

void warp(const float* src, const PictureShape& shape, const AffineMap& map, const WarpOptions& options,
          float* dst);

/// About the middle of the picture, by an angle in radians, clockwise as it is seen where that is negative.
AffineMap rotation(const PictureShape& shape, double angle);
/// By parts of the height and of the width: positive is down, and to the right.
AffineMap translation(const PictureShape& shape, double down, double right);
/// About the middle; a positive part zooms out, a negative one in.
AffineMap zoom(const PictureShape& shape, double height_part, double width_part);

}  // namespace dtrain
