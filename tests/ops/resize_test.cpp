// Compares the resizing of images and its gradient with the formula for half-pixel centers.
#include "ops/resize.h"

#include <algorithm>
#include <cmath>

#include "fixture.h"

namespace dtrain {
using namespace test;

namespace {

/// Returns the weight that the input pixel `of` has in the output pixel `at`, along one axis. The axis was
/// resized from `extent` to `out_extent` pixels.
double weight(int64_t at, int64_t of, int64_t extent, int64_t out_extent, bool is_nearest) {
  if (is_nearest) return (2 * at + 1) * extent / (2 * out_extent) == of ? 1 : 0;
  const double place =
      (static_cast<double>(at) + 0.5) * static_cast<double>(extent) / static_cast<double>(out_extent) - 0.5;
  const double inside = std::clamp(place, 0.0, static_cast<double>(extent - 1));
  return std::max(0.0, 1 - std::abs(inside - static_cast<double>(of)));
}

void check_interpolation(const Device& device, const ResizeSpec& spec) {
  CAPTURE(spec.out_height);
  CAPTURE(spec.out_width);
  CAPTURE(spec.channels);
  const int64_t height = spec.out_height, width = spec.out_width, channels = spec.channels;
  const int64_t small = spec.batch * spec.height * spec.width * channels,
                large = spec.batch * height * width * channels;
  const Floats src = device.random(small, 1), diff = device.random(large, 2);
  Doubles dst(static_cast<size_t>(large)), diff_src(static_cast<size_t>(small));
  for (int64_t i = 0; i < large; ++i) {
    const int64_t c = i % channels, x = i / channels % width, y = i / channels / width % height,
                  n = i / channels / width / height;
    for (int64_t sy = 0; sy < spec.height; ++sy)
      for (int64_t sx = 0; sx < spec.width; ++sx) {
        const double part = weight(y, sy, spec.height, height, spec.is_nearest) *
                            weight(x, sx, spec.width, width, spec.is_nearest);
        const auto from = static_cast<size_t>(((n * spec.height + sy) * spec.width + sx) * channels + c);
        dst[static_cast<size_t>(i)] += part * static_cast<double>(src[from]);
        diff_src[from] += part * static_cast<double>(diff[static_cast<size_t>(i)]);
      }
  }
  const TypedArray own_src = device.typed(src), own_diff = device.typed(diff),
                   out = device.typed(diff.size()), back = device.typed(src.size());
  device.ops().resize(spec, own_src.data(), out.data());
  check_close(out.read(), dst, device.tolerance(2e-6));
  device.ops().resize_backward(spec, own_diff.data(), back.data());
  check_close(back.read(), diff_src, device.tolerance(5e-6));
}

}  // namespace

DEVICE_TEST_CASE("bilinear and nearest resizing and their gradients match the reference") {
  for (const bool is_nearest : {false, true}) {
    CAPTURE(is_nearest);
    for (const int64_t height : {1, 2, 3, 5, 6, 12})
      for (const int64_t width : {1, 3, 4, 7, 20})
        for (const int64_t channels : {3, 16})
          check_interpolation(device, {.batch = 2,
                                       .height = 3,
                                       .width = 4,
                                       .channels = channels,
                                       .out_height = height,
                                       .out_width = width,
                                       .is_nearest = is_nearest});
    check_interpolation(device, {.batch = 1,
                                 .height = 1,
                                 .width = 2,
                                 .channels = 1,
                                 .out_height = 4,
                                 .out_width = 2,
                                 .is_nearest = is_nearest});
    check_interpolation(device, {.batch = 3,
                                 .height = 17,
                                 .width = 15,
                                 .channels = 8,
                                 .out_height = 34,
                                 .out_width = 6,
                                 .is_nearest = is_nearest});
  }
}

TEST_CASE("extents are limited so that 32 bits suffice") {
  using math::ResizedAxis;
  constexpr int64_t kLarge = int64_t{1} << 30;
  CHECK(ResizedAxis::fits(1, kLarge));
  CHECK(ResizedAxis::fits(kLarge, 1));
  CHECK(ResizedAxis::fits(40000, 30000));
  CHECK_FALSE(ResizedAxis::fits(40000, 30001));
  CHECK_FALSE(ResizedAxis::fits(1, kLarge + 1));
  const ResizedAxis longest = ResizedAxis::of(1, kLarge, false);
  CHECK(longest.between(static_cast<int32_t>(kLarge - 1)).first == 0);
  CHECK(longest.end(0) == kLarge);
  const ResizedAxis shortest = ResizedAxis::of(kLarge, 1, false);
  CHECK(shortest.between(0).first == kLarge / 2 - 1);
  CHECK(shortest.between(0).part == 0.5f);
}

}  // namespace dtrain
