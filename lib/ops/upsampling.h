// The spec of bilinear interpolation by whole factors.
#pragma once

#include <cstdint>

#include "ops/math/upsampling.h"

namespace dtrain {

/// Plain images of [batch, height, width, channels] and larger ones of [batch, height * times_down,
/// width * times_across, channels]; no height or width is more than 2^30. The middles of a pixel's parts lie
/// evenly within it (half-pixel centers); beyond the middles of the outermost pixels nothing changes any
/// more.
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
