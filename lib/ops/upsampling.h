// The spec of bilinear upsampling by integer factors.
#pragma once

#include <cstdint>

#include "ops/math/upsampling.h"

namespace dtrain {

/// Enlarges plain images from [batch, height, width, channels] to [batch, height * times_down, width *
/// times_across, channels]. Heights and widths are at most 2^30. Positions are those of half-pixel centers;
/// outside of the centers of the outermost pixels, values are constant.
struct BilinearSpec {
  int64_t batch = 0, height = 0, width = 0, channels = 0;
  int64_t times_down = 1, times_across = 1;

  int64_t out_height() const { return height * times_down; }
  int64_t out_width() const { return width * times_across; }
  math::GrowingAxis down() const { return {static_cast<int32_t>(height), static_cast<int32_t>(times_down)}; }
  math::GrowingAxis across() const {
    return {static_cast<int32_t>(width), static_cast<int32_t>(times_across)};
  }
};

}  // namespace dtrain
