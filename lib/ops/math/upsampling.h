// Linear interpolation along an axis that grows by a whole factor. Extents are 2^30 at most, in 32 bits, by
// which GPUs divide much sooner.
#pragma once

#include <cstdint>

#include "base/host_device.h"

namespace dtrain::math {

/// The two pixels that a pixel of the larger axis lies between. `part` is the second's weight, 1 - part the
/// first's.
struct Between {
  int32_t first, second;
  float part;
};

/// An axis of `extent` pixels, which become `times` as many.
struct GrowingAxis {
  int32_t extent, times;

  /// `at`: a pixel of the larger axis.
  DTRAIN_HOST_DEVICE Between between(int32_t at) const {
    const int32_t pixel = at / times;
    const int32_t ahead = 2 * (at - pixel * times) + 1 - times;  // of the pixel's middle, in halves of parts
    const int32_t first = ahead < 0 ? pixel - 1 : pixel;
    const int32_t beyond = ahead < 0 ? ahead + times + times : ahead;  // the middle of `first`
    return {first < 0 ? 0 : first, first + 1 < extent ? first + 1 : extent - 1,
            static_cast<float>(beyond) / (2.0f * static_cast<float>(times))};
  }

  /// The weight that pixel `of` has in pixel `at` of the larger axis.
  DTRAIN_HOST_DEVICE float weight(int32_t at, int32_t of) const {
    const Between place = between(at);
    return (place.first == of ? 1.0f - place.part : 0.0f) + (place.second == of ? place.part : 0.0f);
  }

  /// The pixels of the larger axis, from begin(of) on and before end(of), in which pixel `of` may have a
  /// weight.
  DTRAIN_HOST_DEVICE int32_t begin(int32_t of) const { return of == 0 ? 0 : (of - 1) * times + times / 2; }
  DTRAIN_HOST_DEVICE int32_t end(int32_t of) const {
    return of + 1 == extent ? extent * times : (of + 1) * times + times / 2;
  }
};

}  // namespace dtrain::math
