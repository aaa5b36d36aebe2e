// Bilinear upsampling and its gradient, compared with the formula for half-pixel centers.
#include "ops/upsampling.h"

#include <algorithm>
#include <cmath>

#include "fixture.h"

namespace dtrain {
using namespace test;

namespace {

/// Returns the weight of pixel `of` in pixel `at` of an axis that grew from `extent` to `extent * times`
/// pixels.
double weight(int64_t at, int64_t of, int64_t extent, int64_t times) {
  const double place = (static_cast<double>(at) + 0.5) / static_cast<double>(times) - 0.5;
  const double inside = std::clamp(place, 0.0, static_cast<double>(extent - 1));
  return std::max(0.0, 1 - std::abs(inside - static_cast<double>(of)));
}

void check_interpolation(const Device& device, const BilinearSpec& spec) {
  CAPTURE(spec.times_down);
  CAPTURE(spec.times_across);
  CAPTURE(spec.channels);
  const int64_t height = spec.out_height(), width = spec.out_width(), channels = spec.channels;
  const int64_t small = spec.batch * spec.height * spec.width * channels,
                large = spec.batch * height * width * channels;
  const Floats src = device.random(small, 1), diff = device.random(large, 2);
  Doubles dst(static_cast<size_t>(large)), diff_src(static_cast<size_t>(small));
  for (int64_t i = 0; i < large; ++i) {
    const int64_t c = i % channels, x = i / channels % width, y = i / channels / width % height,
                  n = i / channels / width / height;
    for (int64_t sy = 0; sy < spec.height; ++sy)
      for (int64_t sx = 0; sx < spec.width; ++sx) {
        const double part =
            weight(y, sy, spec.height, spec.times_down) * weight(x, sx, spec.width, spec.times_across);
        const auto from = static_cast<size_t>(((n * spec.height + sy) * spec.width + sx) * channels + c);
        dst[static_cast<size_t>(i)] += part * static_cast<double>(src[from]);
        diff_src[from] += part * static_cast<double>(diff[static_cast<size_t>(i)]);
      }
  }
  const TypedArray own_src = device.typed(src), own_diff = device.typed(diff),
                   out = device.typed(diff.size()), back = device.typed(src.size());
  device.ops().upsample_bilinear(spec, own_src.data(), out.data());
  check_close(out.read(), dst, device.tolerance(2e-6));
  device.ops().upsample_bilinear_backward(spec, own_diff.data(), back.data());
  check_close(back.read(), diff_src, device.tolerance(5e-6));
}

}  // namespace

DEVICE_TEST_CASE("bilinear interpolation by integer factors and its gradient match the reference") {
  for (const int64_t times_down : {1, 2, 3, 4})
    for (const int64_t times_across : {1, 2, 5})
      for (const int64_t channels : {3, 16})
        check_interpolation(device, {.batch = 2,
                                     .height = 3,
                                     .width = 4,
                                     .channels = channels,
                                     .times_down = times_down,
                                     .times_across = times_across});
  check_interpolation(
      device, {.batch = 1, .height = 1, .width = 2, .channels = 1, .times_down = 4, .times_across = 1});
  check_interpolation(
      device, {.batch = 3, .height = 17, .width = 15, .channels = 8, .times_down = 2, .times_across = 2});
}

}  // namespace dtrain
