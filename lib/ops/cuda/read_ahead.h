// A loop with several loads in flight, and the choice of the access width.
#pragma once

#include <cstdint>
#include <type_traits>

#include "ops/cuda/types.h"

namespace dtrain::cuda {

/// Calls use(i, load(i)) for the indices i in [first, end) with a stride of `stride`, in order. Issues kAhead
/// loads before the first use, so that a few threads can saturate the memory bandwidth.
template <int kAhead, class Load, class Use>
__device__ inline void read_ahead(int64_t first, int64_t end, int64_t stride, const Load& load,
                                  const Use& use) {
  int64_t i = first;
  for (; i + (kAhead - 1) * stride < end; i += kAhead * stride) {
    decltype(load(i)) loaded[kAhead];
#pragma unroll
    for (int k = 0; k < kAhead; ++k) loaded[k] = load(i + k * stride);
#pragma unroll
    for (int k = 0; k < kAhead; ++k) use(i + k * stride, loaded[k]);
  }
  for (; i < end; i += stride) use(i, load(i));
}

/// N floats. Unlike an array, this struct can be copied and returned.
template <int N>
struct Floats {
  float v[N];
};

/// Returns the values of N channels, or `otherwise` if src is null.
template <int N>
__device__ Floats<N> load_channels(const float* src, int64_t channel, float otherwise) {
  Floats<N> values;
#pragma unroll
  for (int i = 0; i < N; ++i) values.v[i] = src ? src[channel + i] : otherwise;
  return values;
}

/// Calls use(N) with a compile-time constant N. If `vectors` is true, N is the number of elements of a
/// 16-byte access; otherwise, N is 1.
template <class T, class Use>
void with_width(bool vectors, Use&& use) {
  if (vectors) {
    use(std::integral_constant<int, kVector<T>>{});
  } else {
    use(std::integral_constant<int, 1>{});
  }
}

}  // namespace dtrain::cuda
