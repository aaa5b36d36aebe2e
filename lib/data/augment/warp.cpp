#include "data/augment/warp.h"

#include <algorithm>
#include <cmath>

namespace dtrain {

namespace {

/// Returns the source index for pixel `i` of an axis of `extent` pixels; -1 if the pixel has the fill value.
int64_t pixel_at(int64_t i, int64_t extent, FillMode mode) {
  if (i >= 0 && i < extent) return i;
  switch (mode) {
    case FillMode::nearest:
      return std::clamp<int64_t>(i, 0, extent - 1);
    case FillMode::wrap:
      return (i % extent + extent) % extent;
    case FillMode::reflect: {
      const int64_t period = 2 * extent, place = (i % period + period) % period;
      return place < extent ? place : period - 1 - place;
    }
    default:
      return -1;
  }
}

/// Limits a coordinate to a range far larger than any image, but well within 64 bits.
double bounded(double coordinate) {
  return std::clamp(coordinate, -1e9, 1e9);
}

}  // namespace

void warp(const float* src, const PictureShape& shape, const AffineMap& map, const WarpOptions& options,
          float* dst) {
  const auto fill = static_cast<float>(options.fill_value);
  const auto at = [&](int64_t y, int64_t x) -> const float* {
    const int64_t row = pixel_at(y, shape.height, options.fill_mode);
    const int64_t column = pixel_at(x, shape.width, options.fill_mode);
    return row < 0 || column < 0 ? nullptr : src + (row * shape.width + column) * shape.channels;
  };
  for (int64_t row = 0; row < shape.height; ++row)
    for (int64_t column = 0; column < shape.width; ++column, dst += shape.channels) {
      const auto i = static_cast<double>(column), j = static_cast<double>(row);
      const double x = bounded(map.a * i + map.b * j + map.c), y = bounded(map.d * i + map.e * j + map.f);
      if (options.interpolation == Interpolation::nearest) {
        const float* pixel = at(std::llround(y), std::llround(x));
        for (int64_t c = 0; c < shape.channels; ++c) dst[c] = pixel ? pixel[c] : fill;
        continue;
      }
      const auto top = static_cast<int64_t>(std::floor(y)), left = static_cast<int64_t>(std::floor(x));
      const auto down = static_cast<float>(y - std::floor(y)), right = static_cast<float>(x - std::floor(x));
      const float* corners[4] = {at(top, left), at(top, left + 1), at(top + 1, left), at(top + 1, left + 1)};
      const float weights[4] = {(1 - down) * (1 - right), (1 - down) * right, down * (1 - right),
                                down * right};
      for (int64_t c = 0; c < shape.channels; ++c) {
        float sum = 0;
        for (int k = 0; k < 4; ++k) sum += weights[k] * (corners[k] ? corners[k][c] : fill);
        dst[c] = sum;
      }
    }
}

AffineMap rotation(const PictureShape& shape, double angle) {
  const auto h = static_cast<double>(shape.height - 1), w = static_cast<double>(shape.width - 1);
  const double cosine = std::cos(angle), sine = std::sin(angle);
  return {cosine, -sine, (w - (cosine * w - sine * h)) / 2, sine, cosine, (h - (sine * w + cosine * h)) / 2};
}

AffineMap translation(const PictureShape& shape, double down, double right) {
  return {1, 0, -right * static_cast<double>(shape.width), 0, 1, -down * static_cast<double>(shape.height)};
}

AffineMap zoom(const PictureShape& shape, double height_part, double width_part) {
  const auto h = static_cast<double>(shape.height - 1), w = static_cast<double>(shape.width - 1);
  return {1 + width_part, 0, -width_part * w / 2, 0, 1 + height_part, -height_part * h / 2};
}

}  // namespace dtrain
