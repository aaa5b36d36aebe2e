// Interpolation along an axis that is resized. Extents are stored in 32 bits, because GPUs divide 32-bit
// integers much faster.
#pragma once

#include <cstdint>
#include <numeric>

#include "base/host_device.h"

namespace dtrain::math {

/// The two source pixels from which a pixel of the resized axis is interpolated. The weight of `second` is
/// `part`, and the weight of `first` is 1 - part.
struct Between {
  int32_t first, second;
  float part;
};

/// An axis of `extent` pixels that is resized to `out_extent` pixels, with Keras's half-pixel centers:
/// measured in source pixels, the center of pixel i of the resized axis is at (i + 1/2) * extent /
/// out_extent. Before the center of the first source pixel and after the center of the last one, the values
/// are constant. If the axis shrinks, the source is not smoothed (no antialiasing).
struct ResizedAxis {
  int32_t extent, out_extent;
  uint32_t step, parts;  // extent / out_extent as a fraction in lowest terms
  bool is_nearest;       // copies the source pixel that contains the center instead of interpolating

  /// Returns whether all numbers that the functions compute fit in 32 bits.
  static bool fits(int64_t extent, int64_t out_extent) {
    constexpr int64_t kMost = int64_t{1} << 30;
    return extent <= kMost && out_extent <= kMost &&
           extent / std::gcd(extent, out_extent) <= kMost / out_extent;
  }

  /// Returns the axis. fits() must be true for these extents.
  static ResizedAxis of(int64_t extent, int64_t out_extent, bool is_nearest) {
    const int64_t divisor = std::gcd(extent, out_extent);
    return {static_cast<int32_t>(extent), static_cast<int32_t>(out_extent),
            static_cast<uint32_t>(extent / divisor), static_cast<uint32_t>(out_extent / divisor), is_nearest};
  }

  /// Returns the source pixels of pixel `at` of the resized axis.
  DTRAIN_HOST_DEVICE Between between(int32_t at) const {
    // This function measures positions in units of 1 / (2 * parts) source pixels.
    const uint32_t pixel = 2 * parts, center = (2 * static_cast<uint32_t>(at) + 1) * step;
    const auto inside = static_cast<int32_t>(center / pixel);
    if (is_nearest) return {inside, inside, 0.0f};
    // `place` is the distance of the center from the center of the first source pixel. If the center is
    // before the center of the first source pixel, the distance is measured from an imaginary pixel before
    // the first.
    const bool is_before = center < parts;
    const uint32_t place = is_before ? center + parts : center - parts;
    const auto first = static_cast<int32_t>(place / pixel);
    const int32_t second = is_before ? 0 : first + 1;
    return {first, second < extent ? second : extent - 1,
            static_cast<float>(place % pixel) / (2.0f * static_cast<float>(parts))};
  }

  /// Returns the weight of source pixel `of` in pixel `at` of the resized axis.
  DTRAIN_HOST_DEVICE float weight(int32_t at, int32_t of) const {
    const Between place = between(at);
    return (place.first == of ? 1.0f - place.part : 0.0f) + (place.second == of ? place.part : 0.0f);
  }

  /// Source pixel `of` contributes only to pixels of the resized axis in the range [begin(of), end(of)). The
  /// range may be empty.
  DTRAIN_HOST_DEVICE int32_t begin(int32_t of) const {
    return of == 0 ? 0 : first_center(is_nearest ? 2 * of : 2 * of - 1);
  }
  DTRAIN_HOST_DEVICE int32_t end(int32_t of) const {
    return of + 1 == extent ? out_extent : first_center(is_nearest ? 2 * of + 2 : 2 * of + 3);
  }

 private:
  /// Returns the first pixel of the resized axis whose center is at least `halves` halves of a source pixel
  /// from the start of the axis.
  DTRAIN_HOST_DEVICE int32_t first_center(int32_t halves) const {
    const uint32_t center = static_cast<uint32_t>(halves) * parts;
    return center <= step ? 0 : static_cast<int32_t>((center - step - 1) / (2 * step)) + 1;
  }
};

}  // namespace dtrain::math
