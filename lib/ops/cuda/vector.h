// Elementwise kernels: each thread accesses 16 bytes at a time if the arrays are aligned, and computes with
// floats.
#pragma once

#include <cstdint>

#include "device/cuda/context.h"
#include "ops/cuda/launch.h"
#include "ops/cuda/read_ahead.h"
#include "ops/cuda/types.h"

namespace dtrain::cuda {

/// Number of elements per access when a thread loads N elements.
template <class T, int N>
inline constexpr int kAccess = N < kVector<T> ? N : kVector<T>;

/// N elements in their memory format. operator[] converts an element to float. A load in flight occupies
/// registers only for the bytes that it loads. For 16-bit types, it therefore occupies half as many registers
/// as N floats.
template <int N, class T>
struct Raw {
  static constexpr int kStep = kAccess<T, N>;
  Vector<T, kStep> accesses[N / kStep];

  __device__ float operator[](int i) const { return to_float(accesses[i / kStep].v[i % kStep]); }
};

/// Returns src[0 .. N). For N > 1, src must be aligned to 16 bytes, or to the size of N elements if that is
/// smaller.
template <int N, class T>
__device__ inline Raw<N, T> load_raw(const T* src) {
  using Values = Raw<N, T>;
  Values values;
#pragma unroll
  for (int a = 0; a < N / Values::kStep; ++a) {
    values.accesses[a] = reinterpret_cast<const Vector<T, Values::kStep>*>(src)[a];
  }
  return values;
}

/// Sets values = src[0 .. N). The alignment must be the same as for load_raw().
template <int N, class T>
__device__ inline void load(const T* src, float (&values)[N]) {
  const Raw<N, T> loaded = load_raw<N>(src);
#pragma unroll
  for (int i = 0; i < N; ++i) values[i] = loaded[i];
}

/// Write 16 or 8 bytes to global memory with one instruction. The compiler may split an assignment into
/// several narrow stores; it cannot split inline assembly.
__device__ inline void store_whole(uint4* dst, uint4 words) {
#ifdef __CUDA_ARCH__
  asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(dst)), "r"(words.x),
               "r"(words.y), "r"(words.z), "r"(words.w)
               : "memory");
#else
  *dst = words;
#endif
}
__device__ inline void store_whole(uint2* dst, uint2 words) {
#ifdef __CUDA_ARCH__
  asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(dst)), "r"(words.x),
               "r"(words.y)
               : "memory");
#else
  *dst = words;
#endif
}

/// Writes the elements of one access to global memory.
template <class T, int N>
__device__ inline void store_access(T* dst, const Vector<T, N>& access) {
  using Access = Vector<T, N>;
  if constexpr (sizeof(Access) == sizeof(uint4)) {
    store_whole(reinterpret_cast<uint4*>(dst), *reinterpret_cast<const uint4*>(&access));
  } else if constexpr (sizeof(Access) == sizeof(uint2)) {
    store_whole(reinterpret_cast<uint2*>(dst), *reinterpret_cast<const uint2*>(&access));
  } else {
    *reinterpret_cast<Access*>(dst) = access;
  }
}

/// Sets dst[0 .. N) = values. dst must be in global memory. The alignment must be the same as for load_raw().
template <int N, class T>
__device__ inline void store(T* dst, const float (&values)[N]) {
  constexpr int kStep = kAccess<T, N>;
#pragma unroll
  for (int first = 0; first < N; first += kStep) {
    Vector<T, kStep> access;
#pragma unroll
    for (int i = 0; i < kStep; ++i) access.v[i] = from_float<T>(values[first + i]);
    store_access(dst + first, access);
  }
}

/// Quotient and remainder of non-negative numbers. Computed in 32 bits if possible: a 64-bit division is a
/// long subroutine on a GPU, and most indices fit in 32 bits.
struct Division {
  int64_t quotient, rest;
};
__device__ inline Division divide(int64_t a, int64_t b) {
  if (((a | b) >> 32) == 0) {
    const uint32_t quotient = static_cast<uint32_t>(a) / static_cast<uint32_t>(b);
    return {quotient, static_cast<uint32_t>(a) - quotient * static_cast<uint32_t>(b)};
  }
  return {a / b, a % b};
}

/// Return the index of this thread in the grid, and the number of threads in the grid.
__device__ inline int64_t thread_index() {
  return int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
}
__device__ inline int64_t thread_count() {
  return int64_t{gridDim.x} * blockDim.x;
}

/// A functor for for_each() that separates reading from writing: read<N>(i) loads the N elements from i on,
/// and finish<N>(i, loaded) uses them. A thread can therefore issue several reads before it uses the first
/// result.
template <class Body, int N>
concept ReadsFirst = requires(const Body& body, int64_t i) {
  body.template read<N>(i);
};

/// Number of threads per block, and number of reads that a thread has in flight.
inline constexpr int kEachThreads = 256, kEachAhead = 2;

/// Processes the vectors in [first, end) that belong to this thread. A vector has N elements.
template <int N, class Body>
__device__ inline void do_each(const Body& body, int64_t first, int64_t end) {
  if constexpr (ReadsFirst<Body, N>) {
    read_ahead<kEachAhead>(
        first + thread_index(), end, thread_count(), [&](int64_t i) { return body.template read<N>(i * N); },
        [&](int64_t i, const auto& loaded) { body.template finish<N>(i * N, loaded); });
  } else {
    for (int64_t i = first + thread_index(); i < end; i += thread_count()) body.template run<N>(i * N);
  }
}

/// Calls body.run<N>(i) for all elements [i, i + N), where i is a multiple of N, and body.run<1>(i) for the
/// last few elements. If the body has the functions read<N>(i) and finish<N>(i, loaded) instead (ReadsFirst),
/// each thread has several reads in flight.
///
/// The body stays in the kernel's parameter space (__grid_constant__), because a copy that is indexed at run
/// time would be placed in slow local memory. The kernel has no launch bounds, because with them the compiler
/// spills registers of some instances; docs/gpu-kernels.md states the limit.
template <int N, class Body>
__global__ void each_kernel(const __grid_constant__ Body body, int64_t n) {
  const int64_t vectors = n / N;
  do_each<N>(body, 0, vectors);
  if constexpr (N > 1) do_each<1>(body, vectors * N, n);
}

/// Enqueues `body` for n elements. If `vectors` is true, processes N elements at a time; all arrays must then
/// be aligned. Otherwise, processes one element at a time.
template <int N, class Body>
void for_each(const CudaContext& context, int64_t n, bool vectors, const Body& body) {
  if (n <= 0) return;
  const int64_t threads = vectors ? (n + N - 1) / N : n;
  launch(vectors ? each_kernel<N, Body> : each_kernel<1, Body>,
         blocks_for(threads, kEachThreads, context.multiprocessors()), kEachThreads, context.compute(), body,
         n);
}

/// Returns whether all arrays can be accessed 16 bytes at a time. Null arrays count as aligned.
template <class... T>
bool all_aligned(const T*... arrays) {
  return (aligned_16(arrays) && ...);
}

}  // namespace dtrain::cuda
