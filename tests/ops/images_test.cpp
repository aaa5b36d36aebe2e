#include "ops/images.h"

#include <doctest/doctest.h>

namespace dtrain::test {
namespace {

struct Pooled {
  Doubles dst, diff_src;
};

Pooled reference(const PoolingSpec& spec, const Floats& src, const Floats& diff_dst) {
  const Shape in{spec.batch, spec.height, spec.width, spec.channels};
  const Shape out{spec.batch, spec.out_height(), spec.out_width(), spec.channels};
  Pooled pooled{Doubles(diff_dst.size()), Doubles(src.size())};
  const bool max = spec.kind == PoolingSpec::Kind::max;
  for (int64_t n = 0; n < spec.batch; ++n) {
    for (int64_t y = 0; y < spec.out_height(); ++y) {
      for (int64_t x = 0; x < spec.out_width(); ++x) {
        for (int64_t c = 0; c < spec.channels; ++c) {
          const int64_t top = y * spec.stride_height - spec.padding.top,
                        left = x * spec.stride_width - spec.padding.left;
          std::vector<size_t> window;
          for (int64_t sy = std::max<int64_t>(top, 0); sy < std::min(top + spec.pool_height, spec.height);
               ++sy) {
            for (int64_t sx = std::max<int64_t>(left, 0); sx < std::min(left + spec.pool_width, spec.width);
                 ++sx) {
              window.push_back(place(in, Layout::plain, n, sy, sx, c));
            }
          }
          const size_t o = place(out, Layout::plain, n, y, x, c);
          size_t best = window.front();
          double total = 0;
          for (const size_t i : window) {
            best = src[i] > src[best] ? i : best;
            total += static_cast<double>(src[i]);
          }
          const double count = static_cast<double>(window.size());
          pooled.dst[o] = max ? static_cast<double>(src[best]) : total / count;
          for (const size_t i : window) {
            const double share = max ? (i == best ? 1 : 0) : 1 / count;
            pooled.diff_src[i] += share * static_cast<double>(diff_dst[o]);
          }
        }
      }
    }
  }
  return pooled;
}

/// Batch normalisation in double precision, of rows of channels.
struct Normalized {
  Doubles mean, variance, dst, diff_src, diff_gamma, diff_beta;
};

Normalized reference(const BatchNormalizationSpec& spec, const Floats& x, const Floats& gamma,
                     const Floats& beta, const Floats& dy) {
  const auto channels = static_cast<size_t>(spec.channels);
  const double n = static_cast<double>(x.size() / channels);
  Normalized r{Doubles(channels), Doubles(channels), Doubles(x.size()),
               Doubles(x.size()), Doubles(channels), Doubles(channels)};
  Doubles diff(x.size());
  const auto inverse = [&](size_t c) {
    return 1 / std::sqrt(r.variance[c] + static_cast<double>(spec.epsilon));
  };
  const auto normal = [&](size_t i) {
    return (static_cast<double>(x[i]) - r.mean[i % channels]) * inverse(i % channels);
  };
  const auto factor = [&](size_t c) { return spec.scale ? static_cast<double>(gamma[c]) : 1; };
  for (size_t i = 0; i < x.size(); ++i) r.mean[i % channels] += static_cast<double>(x[i]) / n;
  for (size_t i = 0; i < x.size(); ++i) {
    r.variance[i % channels] += std::pow(static_cast<double>(x[i]) - r.mean[i % channels], 2) / n;
  }
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t c = i % channels;
    const double y = normal(i) * factor(c) + (spec.center ? static_cast<double>(beta[c]) : 0);
    r.dst[i] = spec.relu ? std::max(y, 0.0) : y;
    diff[i] = spec.relu && y <= 0 ? 0 : static_cast<double>(dy[i]);
    r.diff_gamma[c] += diff[i] * normal(i);
    r.diff_beta[c] += diff[i];
  }
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t c = i % channels;
    r.diff_src[i] = factor(c) * inverse(c) * (diff[i] - r.diff_beta[c] / n - normal(i) * r.diff_gamma[c] / n);
  }
  return r;
}

void check(Device& device, const BatchNormalizationSpec& spec) {
  const Shape shape{spec.batch, spec.height, spec.width, spec.channels};
  const auto channels = static_cast<size_t>(spec.channels);
  const Floats x = device.random(shape.elements(), 1, 3), dy = device.random(shape.elements(), 2);
  const Floats gamma = random_floats(spec.channels, 3), beta = random_floats(spec.channels, 4);
  const Array<float> own_gamma = device.array(gamma), own_beta = device.array(beta);
  const float *scale = spec.scale ? own_gamma.data() : nullptr,
              *shift = spec.center ? own_beta.data() : nullptr;
  const Normalized expected = reference(spec, x, gamma, beta, dy);

  const auto normalization = device.ops().batch_normalization(spec);
  const auto scratch = device.memory(normalization->scratch_bytes()),
             saved = device.memory(normalization->saved_bytes());
  const TypedArray own_x = laid_out(device, x, shape, spec.layout), y = device.typed(x.size());
  const Array<float> mean = device.floats(channels), variance = device.floats(channels),
                     diff_gamma = device.floats(channels), diff_beta = device.floats(channels);
  normalization->forward_training({.src = own_x.data(),
                                   .gamma = scale,
                                   .beta = shift,
                                   .dst = y.data(),
                                   .mean = mean.data(),
                                   .variance = variance.data(),
                                   .saved = saved.data(),
                                   .scratch = scratch.data()});
  check_close(plain(device, y, shape, spec.layout), expected.dst, device.tolerance(1e-5));
  check_close(mean.read(), expected.mean, 1e-6);
  check_close(variance.read(), expected.variance, 1e-5);

  const TypedArray diff = laid_out(device, dy, shape, spec.layout), apart = device.typed(x.size());
  for (const TypedArray* to : {&apart, &diff}) {
    normalization->backward({.src = own_x.data(),
                             .gamma = scale,
                             .mean = mean.data(),
                             .variance = variance.data(),
                             .diff_dst = diff.data(),
                             .diff_src = to->data(),
                             .diff_gamma = spec.scale ? diff_gamma.data() : nullptr,
                             .diff_beta = spec.center ? diff_beta.data() : nullptr,
                             .saved = saved.data(),
                             .scratch = scratch.data()});
  }
  CHECK(diff.read() == apart.read());
  check_close(plain(device, diff, shape, spec.layout), expected.diff_src, device.tolerance(2e-5));
  if (spec.scale) check_close(diff_gamma.read(), expected.diff_gamma, 2e-5);
  if (spec.center) check_close(diff_beta.read(), expected.diff_beta, 2e-5);

  const TypedArray inferred = device.typed(x.size());
  normalization->forward_inference({.src = own_x.data(),
                                    .gamma = scale,
                                    .beta = shift,
                                    .mean = mean.data(),
                                    .variance = variance.data(),
                                    .dst = inferred.data(),
                                    .scratch = scratch.data()});
  check_close(plain(device, inferred, shape, spec.layout), expected.dst, device.tolerance(1e-5));
}

}  // namespace

TEST_CASE("reorders between all layouts") {
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

DEVICE_TEST_CASE("poolings, forward and backward") {
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
          const Shape in{3, 7, 8, channels}, out{3, spec.out_height(), spec.out_width(), channels};
          CAPTURE(channels);
          CAPTURE(static_cast<int>(layout));
          CAPTURE(variant);
          const Floats src = device.random(in.elements(), 1), diff = device.random(out.elements(), 2);
          const Pooled expected = reference(spec, src, diff);
          const auto pooling = device.ops().pooling(spec);
          const auto scratch = device.memory(pooling->scratch_bytes()),
                     saved = device.memory(pooling->saved_bytes());
          const TypedArray own_src = laid_out(device, src, in, layout),
                           own_diff = laid_out(device, diff, out, layout), dst = device.typed(diff.size()),
                           diff_src = device.typed(src.size());
          pooling->forward(own_src.data(), dst.data(), saved.data(), scratch.data());
          check_close(plain(device, dst, out, layout), expected.dst, device.tolerance(1e-6));
          pooling->backward(own_diff.data(), diff_src.data(), saved.data(), scratch.data());
          check_close(plain(device, diff_src, in, layout), expected.diff_src, device.tolerance(1e-6));
        }
      }
    }
  }
}

DEVICE_TEST_CASE("batch normalisation of images and rows") {
  for (const int64_t channels : {1, 5, 16, 32}) {
    for (const Layout layout : layouts_of(device, channels)) {
      for (const int parts : {0, 1, 2, 3}) {
        for (const bool relu : {false, true}) {
          CAPTURE(channels);
          CAPTURE(static_cast<int>(layout));
          CAPTURE(parts);
          CAPTURE(relu);
          BatchNormalizationSpec spec{.batch = 6, .height = 5, .width = 3, .channels = channels};
          spec.scale = (parts & 1) != 0;
          spec.center = (parts & 2) != 0;
          spec.relu = relu;
          spec.layout = layout;
          check(device, spec);
          if (layout != Layout::plain) continue;
          spec.batch = 40;
          spec.height = spec.width = 1;
          check(device, spec);
        }
      }
    }
  }
}

}  // namespace dtrain::test
