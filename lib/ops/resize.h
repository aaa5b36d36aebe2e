// The spec of image resizing.
#pragma once

#include <cstdint>

#include "ops/math/resize.h"

namespace dtrain {

/// Resizes images of plain layout from [batch, height, width, channels] to [batch, out_height, out_width,
/// channels]. Both axes are resized as math::ResizedAxis describes, and ResizedAxis::fits() must be true for
/// the extents of both.
struct ResizeSpec {
  int64_t batch = 0, height = 0, width = 0, channels = 0;
  int64_t out_height = 0, out_width = 0;
  bool is_nearest = false;  ///< if true, copies the nearest pixel; if false, interpolates bilinearly

  math::ResizedAxis down() const { return math::ResizedAxis::of(height, out_height, is_nearest); }
  math::ResizedAxis across() const { return math::ResizedAxis::of(width, out_width, is_nearest); }
};

}  // namespace dtrain
