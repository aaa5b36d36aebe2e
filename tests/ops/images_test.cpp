#include "ops/images.h"

#include <doctest/doctest.h>

namespace dtrain::test {
namespace {

struct Pooled {
  Doubles dst, diff_src;
};

/// Returns the elements of channel `c` in the window of pixel (z, y, x) of image n's output.
std::vector<size_t> window_of(const PoolingSpec& s, int64_t n, int64_t z, int64_t y, int64_t x, int64_t c) {
  const int64_t front = z * s.stride_depth - s.padding.front, top = y * s.stride_height - s.padding.top,
                left = x * s.stride_width - s.padding.left;
  std::vector<size_t> window;
  for (int64_t sz = std::max<int64_t>(front, 0); sz < std::min(front + s.pool_depth, s.depth); ++sz)
    for (int64_t sy = std::max<int64_t>(top, 0); sy < std::min(top + s.pool_height, s.height); ++sy)
      for (int64_t sx = std::max<int64_t>(left, 0); sx < std::min(left + s.pool_width, s.width); ++sx)
        window.push_back(
            static_cast<size_t>((((n * s.depth + sz) * s.height + sy) * s.width + sx) * s.channels + c));
  return window;
}

Pooled reference(const PoolingSpec& spec, const Floats& src, const Floats& diff_dst) {
  Pooled pooled{Doubles(diff_dst.size()), Doubles(src.size())};
  const bool max = spec.kind == PoolingSpec::Kind::max;
  for (size_t o = 0; o < diff_dst.size(); ++o) {
    const auto i = static_cast<int64_t>(o);
    const int64_t c = i % spec.channels, pixel = i / spec.channels, x = pixel % spec.out_width(),
                  row = pixel / spec.out_width(), y = row % spec.out_height(),
                  plane = row / spec.out_height();
    const std::vector<size_t> window =
        window_of(spec, plane / spec.out_depth(), plane % spec.out_depth(), y, x, c);
    size_t best = window.front();
    double total = 0;
    for (const size_t at : window) {
      best = src[at] > src[best] ? at : best;
      total += static_cast<double>(src[at]);
    }
    const double count = static_cast<double>(window.size());
    pooled.dst[o] = max ? static_cast<double>(src[best]) : total / count;
    for (const size_t at : window) {
      const double share = max ? (at == best ? 1 : 0) : 1 / count;
      pooled.diff_src[at] += share * static_cast<double>(diff_dst[o]);
    }
  }
  return pooled;
}

}  // namespace

TEST_CASE("reorders convert between all layouts") {
  on_every_cpu([](Device& device) {
    for (const int64_t channels : {1, 3, 8, 16, 48}) {
      const Shape shape{2, 3, 5, channels};
      Floats values(static_cast<size_t>(shape.elements()));
      for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
      const TypedArray src = device.typed(values);
      for (const Layout from : layouts_of(device, channels)) {
        for (const Layout to : layouts_of(device, channels)) {
          const TypedArray laid = device.typed(values.size());
          device.ops().reorder(shape, from, to)->run(src.data(), laid.data());
          const Floats dst = laid.read();
          size_t wrong = 0;
          for (int64_t i = 0; i < shape.elements(); ++i) {
            const int64_t c = i % channels, x = i / channels % 5, y = i / channels / 5 % 3,
                          n = i / channels / 15;
            wrong += dst[place(shape, to, n, y, x, c)] != values[place(shape, from, n, y, x, c)];
          }
          CHECK(wrong == 0);
        }
      }
    }
  });
}

namespace {

/// Checks a pooling of `src`, forward and backward, against the reference.
void check_pooling(const Device& device, const PoolingSpec& spec, const Floats& src, double tolerance) {
  const Shape in{spec.batch, spec.depth * spec.height, spec.width, spec.channels},
      out{spec.batch, spec.out_depth() * spec.out_height(), spec.out_width(), spec.channels};
  const Floats diff = device.random(out.elements(), 2);
  const Pooled expected = reference(spec, src, diff);
  const auto pooling = device.ops().pooling(spec);
  const auto scratch = device.memory(pooling->scratch_bytes()), saved = device.memory(pooling->saved_bytes());
  const TypedArray own_src = laid_out(device, src, in, spec.layout),
                   own_diff = laid_out(device, diff, out, spec.layout), dst = device.typed(diff.size()),
                   diff_src = device.typed(src.size());
  pooling->forward(own_src.data(), dst.data(), saved.data(), scratch.data());
  // The planes of a volume may be pooled separately at first, which adds a rounding.
  const bool is_volume = spec.is_volume();
  check_close(plain(device, dst, out, spec.layout), expected.dst,
              device.tolerance(tolerance, is_volume ? 2 : 1));
  pooling->backward(own_diff.data(), diff_src.data(), saved.data(), scratch.data());
  check_close(plain(device, diff_src, in, spec.layout), expected.diff_src,
              device.tolerance(tolerance, is_volume ? 1 + static_cast<int>(spec.pool_depth) : 1));
}

}  // namespace

DEVICE_TEST_CASE("poolings match the reference forward and backward") {
  for (const auto kind : {PoolingSpec::Kind::max, PoolingSpec::Kind::average}) {
    for (const int64_t channels : {1, 5, 16, 32}) {
      for (const Layout layout : layouts_of(device, channels)) {
        for (const int variant : {0, 1, 2, 3}) {
          PoolingSpec spec{
              .kind = kind, .batch = 3, .height = 7, .width = 8, .channels = channels, .padding = {}};
          spec.layout = layout;
          const int64_t size = variant == 0 ? 2 : variant == 3 ? 7 : 3, stride = variant == 2 ? 1 : 2;
          spec.pool_height = spec.pool_width = size;
          spec.stride_height = spec.stride_width = stride;
          if (variant == 1) spec.padding = {1, 1, 0, 1};
          if (variant == 2) spec.padding = {1, 1, 1, 1};
          CAPTURE(channels);
          CAPTURE(static_cast<int>(layout));
          CAPTURE(variant);
          check_pooling(device, spec, device.random(3 * 7 * 8 * channels, 1), 1e-6);
        }
      }
    }
  }
}

DEVICE_TEST_CASE("volume poolings match the reference") {
  for (const auto kind : {PoolingSpec::Kind::max, PoolingSpec::Kind::average}) {
    for (const int64_t channels : {1, 5, 16}) {
      for (const Layout layout : layouts_of(device, channels)) {
        for (const int64_t stride : {1, 2}) {
          PoolingSpec spec{.kind = kind,
                           .batch = 2,
                           .depth = 5,
                           .height = 4,
                           .width = 6,
                           .channels = channels,
                           .pool_depth = stride == 1 ? 3 : 2,
                           .pool_height = 3,
                           .pool_width = 2,
                           .stride_depth = stride,
                           .stride_height = stride,
                           .stride_width = 1,
                           .padding = {}};
          spec.layout = layout;
          if (stride == 1) spec.padding = {1, 1, 0, 1, 2, 1};
          CAPTURE(static_cast<int>(kind));
          CAPTURE(channels);
          CAPTURE(static_cast<int>(layout));
          CAPTURE(stride);
          Floats src = device.random(2 * 5 * 4 * 6 * channels, 1);
          for (float& value : src) value = std::round(4 * value) / 4;  // some windows have several maxima
          check_pooling(device, spec, src, 1e-6);
          spec.training = false;
          const auto pooling = device.ops().pooling(spec);
          if (device.is_gpu()) CHECK(pooling->saved_bytes() == 0);
        }
      }
    }
  }
}

DEVICE_TEST_CASE("poolings of large windows match the reference") {
  for (const auto kind : {PoolingSpec::Kind::max, PoolingSpec::Kind::average}) {
    for (const int64_t channels : {1, 5, 16, 40, 520}) {
      for (const bool global : {true, false}) {
        PoolingSpec spec{
            .kind = kind, .batch = 2, .height = 9, .width = 11, .channels = channels, .padding = {}};
        spec.pool_height = 9;
        spec.pool_width = global ? 11 : 8;
        if (!global) {
          spec.stride_height = 4;
          spec.stride_width = 3;
          spec.padding = {4, 3, 1, 2};
        }
        CAPTURE(channels);
        CAPTURE(static_cast<int>(kind));
        CAPTURE(global);
        // Few distinct numbers, so that there are ties: the first maximum of a window gets the gradient.
        Floats src = device.random(2 * 9 * 11 * channels, 1);
        for (float& value : src) value = std::round(4 * value) / 4;
        check_pooling(device, spec, src, 2e-6);
      }
    }
  }
}

}  // namespace dtrain::test
