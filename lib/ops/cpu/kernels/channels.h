// Kernels that compute or apply per-channel values of images, for all layouts. Part of kernels/all.h.
#pragma once

#include "ops/cpu/kernels/table.h"
#include "ops/math/activations.h"

namespace dtrain::cpu {
namespace {

/// Calls use(first, channel, pixels) for every contiguous run of pixels. A run is an array of [pixels, inner]
/// elements that begins at element `first`; its first channel is `channel`. `begin` and `end` are pixel
/// indices, counted across all images.
template <class Use>
void each_run(const ChannelLayout& layout, int64_t begin, int64_t end, Use&& use) {
  while (begin < end) {
    const int64_t image = begin / layout.pixels, pixel = begin % layout.pixels;
    const int64_t pixels = end - begin < layout.pixels - pixel ? end - begin : layout.pixels - pixel;
    for (int64_t block = 0; block < layout.blocks; ++block) {
      const int64_t run = (image * layout.blocks + block) * layout.pixels + pixel;
      use(run * layout.inner, block * layout.inner, pixels);
    }
    begin += pixels;
  }
}

/// Calls use(element, channel) for the elements of a run; both indices are relative to the run.
template <class Use>
void each_in_run(int64_t pixels, int64_t inner, Use&& use) {
  if (inner == 1) {
#pragma omp simd
    for (int64_t pixel = 0; pixel < pixels; ++pixel) use(pixel, int64_t{0});
    return;
  }
  for (int64_t pixel = 0; pixel < pixels; ++pixel) {
#pragma omp simd
    for (int64_t i = 0; i < inner; ++i) use(pixel * inner + i, i);
  }
}

struct Terms {
  double first, second;
};
/// For every element of a run, adds the two terms that terms(element, channel) returns: the first term to
/// first[channel], and the second to second[channel].
template <class Find>
void add_terms(int64_t pixels, int64_t inner, double* first, double* second, Find&& terms) {
  if (inner == 1) {
    double a = 0.0, b = 0.0;
#pragma omp simd reduction(+ : a, b)
    for (int64_t pixel = 0; pixel < pixels; ++pixel) {
      const Terms found = terms(pixel, int64_t{0});
      a += found.first;
      b += found.second;
    }
    first[0] += a;
    second[0] += b;
    return;
  }
  for (int64_t pixel = 0; pixel < pixels; ++pixel) {
#pragma omp simd
    for (int64_t i = 0; i < inner; ++i) {
      const Terms found = terms(pixel * inner + i, i);
      first[i] += found.first;
      second[i] += found.second;
    }
  }
}

void channel_moments(const ChannelLayout& layout, const float* src, double* moments, double* first_values,
                     int64_t begin, int64_t end) {
  const int64_t channels = layout.channels();
  double *means = moments + 1, *squares = means + channels;
  each_run(layout, begin, begin + 1, [&](int64_t first, int64_t channel, int64_t) {
    for (int64_t i = 0; i < layout.inner; ++i)
      first_values[channel + i] = static_cast<double>(src[first + i]);
  });
  for (int64_t c = 0; c < 2 * channels; ++c) means[c] = 0.0;
  each_run(layout, begin, end, [&](int64_t first, int64_t channel, int64_t pixels) {
    const float* x = src + first;
    const double* from = first_values + channel;
    add_terms(pixels, layout.inner, means + channel, squares + channel, [=](int64_t element, int64_t i) {
      const double distance = static_cast<double>(x[element]) - from[i];
      return Terms{distance, distance * distance};
    });
  });
  const auto count = static_cast<double>(end - begin);
  moments[0] = count;
  for (int64_t c = 0; c < channels; ++c) {
    const double distance = means[c] / count, left = squares[c] - distance * means[c];
    means[c] = first_values[c] + distance;
    squares[c] = left < 0.0 ? 0.0 : left;
  }
}

/// Calls with(activation), where activation is relu or linear.
template <class With>
void with_relu(bool relu, With&& with) {
  relu ? with(math::Relu()) : with(math::Linear());
}

void normalize_channels(const ChannelLayout& layout, const NormalizedChannels& channels, bool relu,
                        const float* src, float* dst, int64_t begin, int64_t end) {
  with_relu(relu, [&](auto activation) {
    each_run(layout, begin, end, [&](int64_t first, int64_t channel, int64_t pixels) {
      const float *x = src + first, *mean = channels.mean + channel, *scale = channels.scale + channel,
                  *shift = channels.shift + channel;
      float* y = dst + first;
      each_in_run(pixels, layout.inner, [=](int64_t element, int64_t i) {
        y[element] = activation.forward((x[element] - mean[i]) * scale[i] + shift[i]);
      });
    });
  });
}

void channel_gradient_sums(const ChannelLayout& layout, const NormalizedChannels& channels, bool relu,
                           const float* src, const float* diff_dst, double* sums, int64_t begin,
                           int64_t end) {
  double *gradients = sums, *products = sums + layout.channels();
  for (int64_t c = 0; c < 2 * layout.channels(); ++c) sums[c] = 0.0;
  with_relu(relu, [&](auto activation) {
    each_run(layout, begin, end, [&](int64_t first, int64_t channel, int64_t pixels) {
      const float *x = src + first, *dy = diff_dst + first, *mean = channels.mean + channel,
                  *scale = channels.scale + channel, *shift = channels.shift + channel;
      add_terms(pixels, layout.inner, gradients + channel, products + channel,
                [=](int64_t element, int64_t i) {
                  const float centerd = x[element] - mean[i];
                  const auto gradient =
                      static_cast<double>(activation.backward(centerd * scale[i] + shift[i], dy[element]));
                  return Terms{gradient, gradient * static_cast<double>(centerd)};
                });
    });
  });
}

void normalize_channels_backward(const ChannelLayout& layout, const NormalizedChannels& channels, bool relu,
                                 const float* src, const float* diff_dst, const float* slopes,
                                 const float* offsets, float* diff_src, int64_t begin, int64_t end) {
  with_relu(relu, [&](auto activation) {
    each_run(layout, begin, end, [&](int64_t first, int64_t channel, int64_t pixels) {
      const float *x = src + first, *dy = diff_dst + first, *mean = channels.mean + channel,
                  *scale = channels.scale + channel, *shift = channels.shift + channel;
      const float *slope = slopes + channel, *offset = offsets + channel;
      float* dx = diff_src + first;
      each_in_run(pixels, layout.inner, [=](int64_t element, int64_t i) {
        const float centerd = x[element] - mean[i];
        const float gradient = activation.backward(centerd * scale[i] + shift[i], dy[element]);
        dx[element] = scale[i] * gradient + (slope[i] * centerd + offset[i]);
      });
    });
  });
}

}  // namespace
}  // namespace dtrain::cpu
