// Linear interpolation along an axis that grows by an integer factor. Extents are at most 2^30 and stored in
// 32 bits, because GPUs divide 32-bit integers much faster.
#pragma once

#include <cstdint>

#include "base/host_device.h"

namespace dtrain::math {

/// The two source pixels next to a pixel of the larger axis. `part` is the weight of `second`, and 1 - part
/// the weight of `first`.
struct Between {
  int32_t first, second;
  float part;
};

/// An axis of `extent` pixels that is enlarged to `extent * times` pixels.
struct GrowingAxis {
  int32_t extent, times;

  /// Returns the source pixels of pixel `at` of the larger axis.
  DTRAIN_HOST_DEVICE Between between(int32_t at) const {
    const int32_t pixel = at / times;
    // Distances from the centers of `pixel` and of `first`, in halves of a pixel of the larger axis.
    const int32_t ahead = 2 * (at - pixel * times) + 1 - times;
    const int32_t first = ahead < 0 ? pixel - 1 : pixel;
    const int32_t beyond = ahead < 0 ? ahead + times + times : ahead;
    return {first < 0 ? 0 : first, first + 1 < extent ? first + 1 : extent - 1,
            static_cast<float>(beyond) / (2.0f * static_cast<float>(times))};
  }

  /// Returns the weight of source pixel `of` in pixel `at` of the larger axis.
  DTRAIN_HOST_DEVICE float weight(int32_t at, int32_t of) const {
    const Between place = between(at);
    return (place.first == of ? 1.0f - place.part : 0.0f) + (place.second == of ? place.part : 0.0f);
  }

  /// begin() and end() bound the pixels of the larger axis to which source pixel `of` contributes: all are in
  /// [begin(of), end(of)).
  DTRAIN_HOST_DEVICE int32_t begin(int32_t of) const { return of == 0 ? 0 : (of - 1) * times + times / 2; }
  DTRAIN_HOST_DEVICE int32_t end(int32_t of) const {
    return of + 1 == extent ? extent * times : (of + 1) * times + times / 2;
  }
};

}  // namespace dtrain::math
