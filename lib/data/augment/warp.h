// Warps images with an affine map, like Keras's affine_transform.
#pragma once

#include "config/codec.h"
#include "data/augment/picture_stage.h"

namespace dtrain {

/// Defines the values of pixels beyond the edges of an image. For a row a b c d, reflect gives (d c b a | a b
/// c d | d c b a), wrap gives (a b c d | a b c d | a b c d), nearest repeats the pixel at the edge, and
/// constant uses one number for all pixels.
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

/// Pixel (x, y) of the result is taken from (a x + b y + c, d x + e y + f) of the source image.
struct AffineMap {
  double a = 1, b = 0, c = 0, d = 0, e = 1, f = 0;
};

struct WarpOptions {
  FillMode fill_mode = FillMode::reflect;
  Interpolation interpolation = Interpolation::bilinear;
  double fill_value = 0;
  int64_t fill_class = 0;
};

void warp(const float* src, const PictureShape& shape, const AffineMap& map, const WarpOptions& options,
          float* dst);

/// Rotates about the center of the image by an angle in radians; negative angles rotate clockwise.
AffineMap rotation(const PictureShape& shape, double angle);
/// Translates by fractions of the height and the width; positive means down and to the right.
AffineMap translation(const PictureShape& shape, double down, double right);
/// Zooms about the center; a positive fraction zooms out, a negative one in.
AffineMap zoom(const PictureShape& shape, double height_part, double width_part);

}  // namespace dtrain
