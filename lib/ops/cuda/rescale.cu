// Scales and shifts the columns of an array. The scales and offsets are in host memory and are passed to the
// kernel as an argument.
#include <algorithm>
#include <cstdint>

#include "ops/cuda/cuda_ops.h"
#include "ops/cuda/vector.h"

namespace dtrain::cuda {
namespace {

/// Maximum number of columns per launch. Their scales and offsets take 2 KiB of the 4 KiB that the arguments
/// of a kernel may have.
constexpr int64_t kMostRescaled = 256;

/// Scales and shifts all elements by one scale and one offset.
template <class T>
struct RescaleAll {
  T* dst;
  const T* src;
  float scale, offset;

  template <int N>
  __device__ Floats<N> read(int64_t i) const {
    Floats<N> values;
    load(src + i, values.v);
    return values;
  }
  template <int N>
  __device__ void finish(int64_t i, Floats<N> values) const {
#pragma unroll
    for (int j = 0; j < N; ++j) values.v[j] = values.v[j] * scale + offset;
    store(dst + i, values.v);
  }
};

/// Scales and shifts the columns [first, first + count). Each column has a separate scale and offset.
template <class T>
struct RescaleColumns {
  T* dst;
  const T* src;
  int64_t columns, first, count;
  float scale[kMostRescaled], offset[kMostRescaled];

  template <int N>
  __device__ void run(int64_t i) const {
    static_assert(N == 1);
    const Division place = divide(i, count);
    const int64_t at = place.quotient * columns + first + place.rest;
    dst[at] = from_float<T>(to_float(src[at]) * scale[place.rest] + offset[place.rest]);
  }
};

}  // namespace

void CudaOps::rescale(void* dst, const void* src, const float* scale, const float* offset, int64_t rows,
                      int64_t columns) {
  with_type(math_.type, [&](auto type) {
    using T = decltype(type);
    auto* const to = static_cast<T*>(dst);
    const auto* const from = static_cast<const T*>(src);
    if (columns == 1) {
      for_each<kVector<T>>(context_, rows, all_aligned(dst, src), RescaleAll<T>{to, from, *scale, *offset});
      return;
    }
    for (int64_t first = 0; first < columns; first += kMostRescaled) {
      RescaleColumns<T> body{to, from, columns, first, std::min(kMostRescaled, columns - first), {}, {}};
      std::copy_n(scale + first, body.count, body.scale);
      std::copy_n(offset + first, body.count, body.offset);
      for_each<1>(context_, rows * body.count, false, body);
    }
  });
}

}  // namespace dtrain::cuda
