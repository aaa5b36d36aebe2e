// Dropout and normally distributed noise. Random numbers depend on the sample and the element only.
#include "ops/cuda/cuda_ops.h"
#include "ops/cuda/random.h"
#include "ops/cuda/vector.h"
#include "ops/math/noise.h"

namespace dtrain::cuda {
namespace {

/// Dropout. If a sample has one pixel, each element is dropped independently. If a sample has several pixels,
/// a channel is dropped for all pixels of the sample (spatial dropout).
template <class T>
struct Dropout {
  T* dst;
  const T* src;
  float rate, factor;
  Philox random;
  const uint64_t* step;
  uint64_t first_sample;
  int64_t pixels, per_pixel;

  /// If N > 1, N must be a multiple of 4 that divides per_pixel, so that whole blocks of random words are
  /// used.
  template <int N>
  __device__ void run(int64_t i) const {
    const Division place = divide(i, per_pixel);
    const int64_t row = pixels == 1 ? place.quotient : divide(place.quotient, pixels).quotient;
    const uint64_t sample = first_sample + static_cast<uint64_t>(row);
    const auto element = static_cast<uint64_t>(place.rest);
    float values[N];
    load(src + i, values);
#pragma unroll
    for (int first = 0; first < N; first += 4) {
      const Philox::Block words = random(*step, sample << 32 | (element / 4 + first / 4));
#pragma unroll
      for (int j = 0; j < 4 && first + j < N; ++j) {
        const uint32_t word = N == 1 ? word_of(words, element % 4) : words.v[j];
        values[first + j] = uniform01(word) >= rate ? values[first + j] * factor : 0.0f;
      }
    }
    store(dst + i, values);
  }
};

/// If N > 1, N must be a multiple of 4 that divides per_sample.
template <class T>
struct GaussianNoise {
  T* dst;
  const T* src;
  NoiseSpec noise;
  Philox random;
  const uint64_t* step;
  uint64_t first_sample;
  int64_t per_sample;

  template <int N>
  __device__ void run(int64_t i) const {
    const Division place = divide(i, per_sample);
    const uint64_t sample = first_sample + static_cast<uint64_t>(place.quotient);
    const auto element = static_cast<uint64_t>(place.rest);
    float values[N];
    load(src + i, values);
    if constexpr (N == 1) {
      const Philox::Block words = random(*step, sample << 32 | element / 4);
      const uint64_t pair = element % 4 / 2 * 2;
      const math::Normals two = math::normals(word_of(words, pair), word_of(words, pair + 1));
      values[0] = math::with_noise(noise, values[0], element % 2 == 0 ? two.first : two.second);
    } else {
#pragma unroll
      for (int first = 0; first < N; first += 4) {
        const Philox::Block words = random(*step, sample << 32 | (element / 4 + first / 4));
#pragma unroll
        for (int j = 0; j < 4; j += 2) {
          const math::Normals two = math::normals(words.v[j], words.v[j + 1]);
          values[first + j] = math::with_noise(noise, values[first + j], two.first);
          values[first + j + 1] = math::with_noise(noise, values[first + j + 1], two.second);
        }
      }
    }
    store(dst + i, values);
  }
};

}  // namespace

void CudaOps::dropout(void* dst, const void* src, float rate, const Philox& random, const uint64_t* step,
                      uint64_t first_sample, int64_t samples, int64_t per_sample) {
  with_type(math_.type, [&](auto type) {
    using T = decltype(type);
    const bool vectors = per_sample % kVector<T> == 0 && all_aligned(dst, src);
    for_each<kVector<T>>(context_, samples * per_sample, vectors,
                         Dropout<T>{static_cast<T*>(dst), static_cast<const T*>(src), rate,
                                    1.0f / (1.0f - rate), random, step, first_sample, 1, per_sample});
  });
}

void CudaOps::spatial_dropout(void* dst, const void* src, float rate, const Philox& random,
                              const uint64_t* step, uint64_t first_sample, int64_t samples, int64_t pixels,
                              int64_t channels) {
  with_type(math_.type, [&](auto type) {
    using T = decltype(type);
    const bool vectors = channels % kVector<T> == 0 && all_aligned(dst, src);
    for_each<kVector<T>>(context_, samples * pixels * channels, vectors,
                         Dropout<T>{static_cast<T*>(dst), static_cast<const T*>(src), rate,
                                    1.0f / (1.0f - rate), random, step, first_sample, pixels, channels});
  });
}

void CudaOps::gaussian_noise(void* dst, const void* src, const NoiseSpec& noise, const Philox& random,
                             const uint64_t* step, uint64_t first_sample, int64_t samples,
                             int64_t per_sample) {
  with_type(math_.type, [&](auto type) {
    using T = decltype(type);
    const bool vectors = per_sample % kVector<T> == 0 && all_aligned(dst, src);
    for_each<kVector<T>>(context_, samples * per_sample, vectors,
                         GaussianNoise<T>{static_cast<T*>(dst), static_cast<const T*>(src), noise, random,
                                          step, first_sample, per_sample});
  });
}

}  // namespace dtrain::cuda
