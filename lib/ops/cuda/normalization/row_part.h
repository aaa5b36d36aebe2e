// The part of a row that one thread processes, for kernels that iterate over a row several times.
#pragma once

#include <cstdint>
#include <type_traits>

#include "ops/cuda/reductions/rows.h"
#include "ops/cuda/vector.h"

namespace dtrain::cuda {

/// Maximum number of accesses to a row whose elements a thread keeps in registers, and minimum number of
/// blocks per multiprocessor (__launch_bounds__). With 4 blocks instead of 3, the backward kernel would spill
/// registers.
inline constexpr int kHeldAccesses = 4, kRowBlocks = 3;

/// The elements of a row that one thread processes, in accesses of N elements. If kHeld is not 0, the thread
/// has at most kHeld accesses and keeps their elements in registers. If kHeld is 0, the elements are read
/// from memory in every iteration.
template <int N, int kHeld, class T>
class RowPart {
 public:
  __device__ RowPart(const T* row, int64_t columns) : row_(row), columns_(columns) {
#pragma unroll
    for (int k = 0; k < kHeld; ++k)
      if (place(k) < columns_) held_[k] = load_raw<N>(row_ + place(k));
  }
  /// Makes the compiler forget that it has converted the elements to float, so it converts them again after
  /// this call. Otherwise, the compiler would keep the floats during the reductions, which takes twice as
  /// many registers.
  __device__ void forget_floats() {
    if constexpr (sizeof(T) < sizeof(float) && N > 1) {
      constexpr int kWords = kHeld * N * static_cast<int>(sizeof(T)) / static_cast<int>(sizeof(uint32_t));
#pragma unroll
      for (int i = 0; i < kWords; ++i) asm volatile("" : "+r"(reinterpret_cast<uint32_t*>(held_)[i]));
    }
  }
  /// Calls use(c, elements) for each of this thread's accesses. `elements` are the N elements from column c
  /// on.
  template <class Use>
  __device__ void each(const Use& use) const {
    if constexpr (kHeld == 0) {
      each_column<N>(columns_, [&](int64_t c) { use(c, load_raw<N>(row_ + c)); });
    } else {
#pragma unroll
      for (int k = 0; k < kHeld; ++k)
        if (place(k) < columns_) use(place(k), held_[k]);
    }
  }
  /// Calls use(c, elements, elements of `other`) for each of this thread's accesses.
  template <class Use>
  __device__ void each_with(const RowPart& other, const Use& use) const {
    if constexpr (kHeld == 0) {
      each([&](int64_t c, const Raw<N, T>& own) { use(c, own, load_raw<N>(other.row_ + c)); });
    } else {
#pragma unroll
      for (int k = 0; k < kHeld; ++k)
        if (place(k) < columns_) use(place(k), held_[k], other.held_[k]);
    }
  }

 private:
  __device__ int64_t place(int k) const {
    return (int64_t{k} * blockDim.x + threadIdx.x) * N;
  }

  const T* row_;
  int64_t columns_;
  Raw<N, T> held_[kHeld > 0 ? kHeld : 1];
};

/// Loads N values from src + at, or sets them to `otherwise` if src is null.
template <int N>
__device__ inline void load_or(float otherwise, const float* src, int64_t at, float (&values)[N]) {
  if (src) return load(src + at, values);
#pragma unroll
  for (int j = 0; j < N; ++j) values[j] = otherwise;
}

/// Calls use(N, kHeld, long_rows) for rows with `columns` elements of type T. N and kHeld are compile-time
/// constants (see RowPart). long_rows is true if a block should process a row, and false if a warp should.
template <class T, class Use>
void with_row_parts(bool vectors, int64_t columns, Use&& use) {
  with_width<T>(vectors, [&](auto width) {
    constexpr int64_t kOfThread = kHeldAccesses * decltype(width)::value;
    const bool long_rows = columns > kWarp * kOfThread;
    if (columns > kRowThreads * kOfThread) return use(width, std::integral_constant<int, 0>{}, long_rows);
    use(width, std::integral_constant<int, kHeldAccesses>{}, long_rows);
  });
}

}  // namespace dtrain::cuda
