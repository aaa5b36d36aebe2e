// Group normalization. Part of kernels/all.h.
#pragma once

#include <cmath>

#include "ops/cpu/kernels/table.h"

namespace dtrain::cpu {
namespace {

/// Maximum number of channels that are processed in one pass over the pixels. Several small groups share one
/// pass; a group with more channels needs several passes.
constexpr int64_t kGroupChannels = 64;

/// Consecutive groups of one sample: either groups with at most kGroupChannels channels in total, or a single
/// larger group.
struct GroupBlock {
  int64_t sample, first, count;  // the first group and the number of groups
};

/// Calls use(block) for the groups in [begin, end), where the groups of all samples are numbered
/// consecutively.
template <class Use>
void each_group_block(int64_t groups, int64_t width, int64_t begin, int64_t end, Use&& use) {
  const int64_t most = width < kGroupChannels ? kGroupChannels / width : 1;
  for (int64_t i = begin; i < end;) {
    GroupBlock block{i / groups, i % groups, most};
    if (block.count > groups - block.first) block.count = groups - block.first;
    if (block.count > end - i) block.count = end - i;
    use(block);
    i += block.count;
  }
}

/// Splits the channels of a block into parts of at most kGroupChannels channels, and calls use(from, n) for
/// each part. The part consists of the channels [from, from + n).
template <class Use>
void each_part(int64_t block_channels, Use&& use) {
  for (int64_t from = 0; from < block_channels; from += kGroupChannels)
    use(from, block_channels - from < kGroupChannels ? block_channels - from : kGroupChannels);
}

/// Writes totals[g] = the sum of term(i, c, of_group[g]) over group g of the block. i is the index of the
/// element relative to the block's first element, and c is the index of its channel relative to the block's
/// first channel. The sums are float64.
template <class Term>
void sum_groups(int64_t pixels, int64_t channels, int64_t width, int64_t count, const float* of_group,
                double* totals, Term&& term) {
  for (int64_t g = 0; g < count; ++g) totals[g] = 0.0;
  each_part(count * width, [&](int64_t from, int64_t n) {
    alignas(64) double sums[kGroupChannels];
    alignas(64) float own[kGroupChannels];
    for (int64_t j = 0; j < n; ++j) {
      sums[j] = 0.0;
      own[j] = of_group[(from + j) / width];
    }
    for (int64_t p = 0; p < pixels; ++p) {
      const int64_t row = p * channels + from;
#pragma omp simd
      for (int64_t j = 0; j < n; ++j) sums[j] += static_cast<double>(term(row + j, from + j, own[j]));
    }
    for (int64_t j = 0; j < n; ++j) totals[(from + j) / width] += sums[j];
  });
}

void group_normalization_forward(const float* src, const float* gamma, const float* beta, float epsilon,
                                 float* dst, float* mean, float* inverse_deviation, int64_t pixels,
                                 int64_t channels, int64_t groups, int64_t begin, int64_t end) {
  const int64_t width = channels / groups;
  const double share = 1.0 / static_cast<double>(pixels * width);
  each_group_block(groups, width, begin, end, [&](const GroupBlock& block) {
    const int64_t first = block.first * width, place = block.sample * pixels * channels + first;
    const float* x = src + place;
    float* y = dst + place;
    float* m = mean + block.sample * groups + block.first;
    float* inverse = inverse_deviation + block.sample * groups + block.first;
    double totals[kGroupChannels];
    // To keep the mean accurate even if all values are large, the group's first value is subtracted from
    // every value before the values are summed.
    for (int64_t g = 0; g < block.count; ++g) m[g] = x[g * width];
    sum_groups(pixels, channels, width, block.count, m, totals, [&](int64_t i, int64_t, float middle) {
      return static_cast<double>(x[i]) - static_cast<double>(middle);
    });
    for (int64_t g = 0; g < block.count; ++g)
      m[g] = static_cast<float>(static_cast<double>(m[g]) + totals[g] * share);
    sum_groups(pixels, channels, width, block.count, m, totals,
               [&](int64_t i, int64_t, float middle) { return (x[i] - middle) * (x[i] - middle); });
    for (int64_t g = 0; g < block.count; ++g)
      inverse[g] = 1.0f / ::sqrtf(static_cast<float>(totals[g] * share) + epsilon);
    each_part(block.count * width, [&](int64_t from, int64_t n) {
      alignas(64) float middles[kGroupChannels], scales[kGroupChannels], shifts[kGroupChannels];
      for (int64_t j = 0; j < n; ++j) {
        const int64_t g = (from + j) / width, c = first + from + j;
        middles[j] = m[g];
        scales[j] = inverse[g] * (gamma ? gamma[c] : 1.0f);
        shifts[j] = beta ? beta[c] : 0.0f;
      }
      for (int64_t p = 0; p < pixels; ++p) {
        const int64_t row = p * channels + from;
#pragma omp simd
        for (int64_t j = 0; j < n; ++j) y[row + j] = (x[row + j] - middles[j]) * scales[j] + shifts[j];
      }
    });
  });
}

void group_normalization_backward(const float* src, const float* gamma, const float* mean,
                                  const float* inverse_deviation, const float* diff_dst, float* diff_src,
                                  int64_t pixels, int64_t channels, int64_t groups, int64_t begin,
                                  int64_t end) {
  const int64_t width = channels / groups;
  const double share = 1.0 / static_cast<double>(pixels * width);
  each_group_block(groups, width, begin, end, [&](const GroupBlock& block) {
    const int64_t first = block.first * width, place = block.sample * pixels * channels + first;
    const float *x = src + place, *dy = diff_dst + place;
    float* dx = diff_src + place;
    const float* m = mean + block.sample * groups + block.first;
    const float* inverse = inverse_deviation + block.sample * groups + block.first;
    const float* scale = gamma ? gamma + first : nullptr;
    double totals[kGroupChannels], dots[kGroupChannels];
    const auto gradient = [&](int64_t i, int64_t c) { return scale ? dy[i] * scale[c] : dy[i]; };
    sum_groups(pixels, channels, width, block.count, m, totals,
               [&](int64_t i, int64_t c, float) { return gradient(i, c); });
    sum_groups(pixels, channels, width, block.count, m, dots,
               [&](int64_t i, int64_t c, float middle) { return gradient(i, c) * (x[i] - middle); });
    each_part(block.count * width, [&](int64_t from, int64_t n) {
      alignas(64) float middles[kGroupChannels], factors[kGroupChannels], means[kGroupChannels],
          slopes[kGroupChannels], scales[kGroupChannels];
      for (int64_t j = 0; j < n; ++j) {
        const int64_t g = (from + j) / width;
        const double one = static_cast<double>(inverse[g]);
        middles[j] = m[g];
        factors[j] = inverse[g];
        scales[j] = scale ? scale[from + j] : 1.0f;
        means[j] = static_cast<float>(totals[g] * share);
        slopes[j] = static_cast<float>(dots[g] * share * one * one);
      }
      for (int64_t p = 0; p < pixels; ++p) {
        const int64_t row = p * channels + from;
#pragma omp simd
        for (int64_t j = 0; j < n; ++j)
          dx[row + j] =
              factors[j] * (dy[row + j] * scales[j] - means[j] - (x[row + j] - middles[j]) * slopes[j]);
      }
    });
  });
}

void group_normalization_scale(const float* src, const float* mean, const float* inverse_deviation,
                               const float* diff_dst, float* diff_gamma, int64_t samples, int64_t pixels,
                               int64_t channels, int64_t groups, int64_t begin, int64_t end) {
  const int64_t width = channels / groups;
  each_part(end - begin, [&](int64_t from, int64_t n) {
    alignas(64) double sums[kGroupChannels] = {};
    alignas(64) float middles[kGroupChannels], factors[kGroupChannels];
    for (int64_t s = 0; s < samples; ++s) {
      for (int64_t j = 0; j < n; ++j) {
        const int64_t g = s * groups + (begin + from + j) / width;
        middles[j] = mean[g];
        factors[j] = inverse_deviation[g];
      }
      for (int64_t p = 0; p < pixels; ++p) {
        const int64_t row = (s * pixels + p) * channels + begin + from;
        const float *x = src + row, *dy = diff_dst + row;
#pragma omp simd
        for (int64_t j = 0; j < n; ++j)
          sums[j] += static_cast<double>(dy[j] * (x[j] - middles[j]) * factors[j]);
      }
    }
    for (int64_t j = 0; j < n; ++j) diff_gamma[begin + from + j] = static_cast<float>(sums[j]);
  });
}

}  // namespace
}  // namespace dtrain::cpu
