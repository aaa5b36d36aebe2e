// Elementwise kernels. Part of kernels/all.h.
#pragma once

#include "ops/cpu/kernels/table.h"
#include "ops/math/activations.h"
#include "ops/math/noise.h"

namespace dtrain::cpu {
namespace {

// `omp simd` tells the compiler that no element depends on another element's result. This also holds if the
// destination is the same array as a source, so callers may pass the same array for both.

void fill(float* dst, float value, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) dst[i] = value;
}

void scale_add(float* dst, const float* src, float alpha, float beta, int64_t begin, int64_t end) {
  if (beta == 0.0f) {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) dst[i] = alpha * src[i];
  } else {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) dst[i] = alpha * src[i] + beta * dst[i];
  }
}

/// Elements of each array per chunk; a chunk stays in the first-level cache between passes.
constexpr int64_t kChunk = 1024;

/// Combines all sources elementwise with the function `with`, chunk by chunk, and calls use(values, first, n)
/// for each chunk in order. `values` holds the combined values of the elements [first, first + n).
template <class Combine, class Use>
void combine(const void* const* srcs, size_t count, int64_t begin, int64_t end, Combine&& with, Use&& use) {
  alignas(64) float values[kChunk];
  const auto src_at = [&](size_t s, int64_t first) { return static_cast<const float*>(srcs[s]) + first; };
  for (int64_t first = begin; first < end; first += kChunk) {
    const int64_t n = first + kChunk < end ? kChunk : end - first;
    if (count == 1) {
      use(src_at(0, first), first, n);
      continue;
    }
    const float *a = src_at(0, first), *b = src_at(1, first);
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) values[i] = with(a[i], b[i]);
    for (size_t s = 2; s < count; ++s) {
      const float* src = src_at(s, first);
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) values[i] = with(values[i], src[i]);
    }
    use(values, first, n);
  }
}

void sum(float* dst, const void* const* srcs, size_t count, const ActivationSpec& spec, int64_t begin,
         int64_t end) {
  math::with_activation(spec, [&](auto activation) {
    combine(
        srcs, count, begin, end, [](float a, float b) { return a + b; },
        [&](const float* values, int64_t first, int64_t n) {
          float* out = dst + first;
#pragma omp simd
          for (int64_t i = 0; i < n; ++i) out[i] = activation.forward(values[i]);
        });
  });
}

void multiply(float* dst, const void* const* srcs, size_t count, int64_t begin, int64_t end) {
  combine(
      srcs, count, begin, end, [](float a, float b) { return a * b; },
      [&](const float* values, int64_t first, int64_t n) {
        float* out = dst + first;
#pragma omp simd
        for (int64_t i = 0; i < n; ++i) out[i] = values[i];
      });
}

void sum_backward(const ActivationSpec& spec, const float* saved, const void* const* diff_dsts, size_t count,
                  float* diff_src, int64_t begin, int64_t end) {
  math::with_activation(spec, [&](auto activation) {
    combine(
        diff_dsts, count, begin, end, [](float a, float b) { return a + b; },
        [&](const float* values, int64_t first, int64_t n) {
          const float* kept = saved ? saved + first : values;  // a linear activation saves nothing
          float* out = diff_src + first;
#pragma omp simd
          for (int64_t i = 0; i < n; ++i) out[i] = activation.backward(kept[i], values[i]);
        });
  });
}

/// Number of blocks of random words that random_words() writes.
constexpr int kDropoutBlocks = 16;
/// Writes the random words of kDropoutBlocks blocks, starting at counter `low`.
void random_words(const Philox& random, uint64_t high, uint64_t low, uint32_t* words) {
  for (int block = 0; block < kDropoutBlocks; ++block) {
    const Philox::Block four = random(high, low + static_cast<uint64_t>(block));
    for (int word = 0; word < 4; ++word) words[4 * block + word] = four.v[word];
  }
}

/// Calls use(words, place, n) for every run of elements of one sample. The run consists of the elements
/// [place, place + n) of the array, and words[i] is the random word of element place + i. `begin` and `end`
/// are indices of blocks of 4 elements.
template <class Use>
void each_random_run(const Philox& random, uint64_t step, uint64_t first_sample, int64_t per_sample,
                     int64_t begin, int64_t end, Use&& use) {
  const int64_t blocks_per_sample = (per_sample + 3) / 4;
  alignas(64) uint32_t words[4 * kDropoutBlocks];
  for (int64_t block = begin; block < end;) {
    const int64_t sample = block / blocks_per_sample, within = block % blocks_per_sample;
    int64_t blocks = blocks_per_sample - within < end - block ? blocks_per_sample - within : end - block;
    if (blocks > kDropoutBlocks) blocks = kDropoutBlocks;
    random_words(random, step,
                 (first_sample + static_cast<uint64_t>(sample)) << 32 | static_cast<uint64_t>(within), words);
    const int64_t left = per_sample - 4 * within;
    use(words, sample * per_sample + 4 * within, 4 * blocks < left ? 4 * blocks : left);
    block += blocks;
  }
}

void dropout(float* dst, const float* src, float rate, const Philox& random, uint64_t step,
             uint64_t first_sample, int64_t per_sample, int64_t begin, int64_t end) {
  const float factor = 1.0f / (1.0f - rate);
  each_random_run(random, step, first_sample, per_sample, begin, end,
                  [&](const uint32_t* words, int64_t place, int64_t n) {
                    const float* in = src + place;
                    float* out = dst + place;
#pragma omp simd
                    for (int64_t i = 0; i < n; ++i)
                      out[i] = uniform01(words[i]) >= rate ? in[i] * factor : 0.0f;
                  });
}

void spatial_dropout(float* dst, const float* src, float rate, const Philox& random, uint64_t step,
                     uint64_t first_sample, int64_t pixels, int64_t channels, int64_t begin, int64_t end) {
  const float factor = 1.0f / (1.0f - rate);
  const int64_t blocks_per_sample = (channels + 3) / 4;
  for (int64_t first = begin; first < end;) {
    const int64_t sample = first / pixels;
    // End of this sample's pixels.
    const int64_t last = (sample + 1) * pixels < end ? (sample + 1) * pixels : end;
    each_random_run(random, step, first_sample, channels, sample * blocks_per_sample,
                    (sample + 1) * blocks_per_sample, [&](const uint32_t* words, int64_t place, int64_t n) {
                      for (int64_t pixel = first; pixel < last; ++pixel) {
                        const int64_t at = pixel * channels + place - sample * channels;
                        const float* in = src + at;
                        float* out = dst + at;
#pragma omp simd
                        for (int64_t i = 0; i < n; ++i)
                          out[i] = uniform01(words[i]) >= rate ? in[i] * factor : 0.0f;
                      }
                    });
    first = last;
  }
}

void gaussian_noise(float* dst, const float* src, const NoiseSpec& noise, const Philox& random, uint64_t step,
                    uint64_t first_sample, int64_t per_sample, int64_t begin, int64_t end) {
  each_random_run(random, step, first_sample, per_sample, begin, end,
                  [&](const uint32_t* words, int64_t place, int64_t n) {
                    alignas(64) float normal[4 * kDropoutBlocks];
#pragma omp simd
                    for (int64_t i = 0; i < 2 * kDropoutBlocks; ++i) {
                      const math::Normals two = math::normals(words[2 * i], words[2 * i + 1]);
                      normal[2 * i] = two.first;
                      normal[2 * i + 1] = two.second;
                    }
                    const float* in = src + place;
                    float* out = dst + place;
#pragma omp simd
                    for (int64_t i = 0; i < n; ++i) out[i] = math::with_noise(noise, in[i], normal[i]);
                  });
}

}  // namespace
}  // namespace dtrain::cpu
