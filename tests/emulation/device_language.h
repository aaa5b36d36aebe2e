// The features of CUDA C++ that kernels use, for the host compiler. The build includes this file before every
// .cu file. It does not define keywords that the headers of the CUDA toolkit define as empty for the host.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <math.h>
#include <type_traits>

#include "emulation/grid.h"

// NOLINTBEGIN(bugprone-reserved-identifier): the names are CUDA's.

#define __launch_bounds__(...)
/// Variables in shared memory are thread-local variables, which have the values of the running block. When a
/// thread switches to another block, grid.cpp saves them and restores the values of the other block. Before a
/// block starts, grid.cpp fills them with 0xff, because shared memory is uninitialized on a device.
#undef __shared__
#define __shared__ static thread_local
#undef __constant__
#define __constant__ static

// The indices of the running thread. grid.cpp sets them whenever it switches to another thread.
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
inline constexpr int warpSize = 32;

inline void __syncthreads() {
  dtrain::emulation::sync_threads();
}
inline int __syncthreads_count(int predicate) {
  return dtrain::emulation::sync_threads_count(predicate != 0);
}
inline int __syncthreads_or(int predicate) {
  return __syncthreads_count(predicate) > 0;
}
inline int __syncthreads_and(int predicate) {
  return __syncthreads_count(predicate == 0) == 0;
}
inline void __syncwarp(unsigned mask = 0xffffffffu) {
  dtrain::emulation::sync_warp(mask);
}
inline unsigned __ballot_sync(unsigned mask, int predicate) {
  return dtrain::emulation::ballot(mask, predicate != 0);
}
inline int __any_sync(unsigned mask, int predicate) {
  return __ballot_sync(mask, predicate) != 0;
}
inline int __all_sync(unsigned mask, int predicate) {
  return __ballot_sync(mask, predicate == 0) == 0;
}
inline unsigned __activemask() {
  return dtrain::emulation::active_lanes();
}

namespace dtrain::emulation {

/// Returns the `value` with which lane `from` calls this function.
template <class T>
T shuffle(unsigned mask, T value, int from) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(uint64_t));
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits = exchange(mask, bits, from);
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

}  // namespace dtrain::emulation

// These functions divide the warp into groups of `width` lanes. If the source lane is outside the group of
// the calling lane, __shfl_sync wraps around within the group. The other functions return the value of the
// calling lane.
template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = warpSize) {
  const int lane = dtrain::emulation::lane(), group = lane & ~(width - 1);
  return dtrain::emulation::shuffle(mask, value, group + (source & (width - 1)));
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int bits, int width = warpSize) {
  const int lane = dtrain::emulation::lane(), last = lane | (width - 1);
  const int from = lane ^ bits;
  return dtrain::emulation::shuffle(mask, value, from > last ? lane : from);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = warpSize) {
  const int lane = dtrain::emulation::lane(), last = lane | (width - 1);
  const int from = lane + static_cast<int>(delta);
  return dtrain::emulation::shuffle(mask, value, from > last ? lane : from);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = warpSize) {
  const int lane = dtrain::emulation::lane(), group = lane & ~(width - 1);
  const int from = lane - static_cast<int>(delta);
  return dtrain::emulation::shuffle(mask, value, from < group ? lane : from);
}

/// Returns a mask of the lanes in `mask` that call this function with the same value.
template <class T>
unsigned __match_any_sync(unsigned mask, T value) {
  unsigned same = 0;
  for (int from = 0; from < warpSize; ++from)
    if ((mask >> from & 1) != 0 && dtrain::emulation::shuffle(mask, value, from) == value) same |= 1u << from;
  return same;
}

inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}
[[noreturn]] inline void __trap() {
  __builtin_trap();
}

// A thread is only interrupted at calls that wait for other threads. Therefore a plain update is atomic.
template <class T>
T atomicAdd(T* address, std::type_identity_t<T> value) {
  const T old = *address;
  *address = old + value;
  return old;
}
template <class T>
T atomicMax(T* address, std::type_identity_t<T> value) {
  const T old = *address;
  if (old < value) *address = value;
  return old;
}
template <class T>
T atomicMin(T* address, std::type_identity_t<T> value) {
  const T old = *address;
  if (value < old) *address = value;
  return old;
}
template <class T>
T atomicOr(T* address, std::type_identity_t<T> value) {
  const T old = *address;
  *address = old | value;
  return old;
}
template <class T>
T atomicAnd(T* address, std::type_identity_t<T> value) {
  const T old = *address;
  *address = old & value;
  return old;
}
template <class T>
T atomicExch(T* address, std::type_identity_t<T> value) {
  const T old = *address;
  *address = value;
  return old;
}
template <class T>
T atomicCAS(T* address, std::type_identity_t<T> expected, std::type_identity_t<T> value) {
  const T old = *address;
  if (old == expected) *address = value;
  return old;
}
/// Counts from 0 to `last`, then starts again at 0.
inline unsigned atomicInc(unsigned* address, unsigned last) {
  const unsigned old = *address;
  *address = old >= last ? 0 : old + 1;
  return old;
}

template <class T>
T __ldg(const T* address) {
  return *address;
}
template <class T>
T __ldcs(const T* address) {
  return *address;
}
template <class T>
T __ldcg(const T* address) {
  return *address;
}
template <class T>
void __stcs(T* address, std::type_identity_t<T> value) {
  *address = value;
}

inline int __float_as_int(float x) {
  return std::bit_cast<int>(x);
}
inline unsigned __float_as_uint(float x) {
  return std::bit_cast<unsigned>(x);
}
inline float __int_as_float(int x) {
  return std::bit_cast<float>(x);
}
inline float __uint_as_float(unsigned x) {
  return std::bit_cast<float>(x);
}
inline float rsqrtf(float x) {
  return 1.0f / sqrtf(x);
}
inline float __frsqrt_rn(float x) {
  return 1.0f / sqrtf(x);
}
inline float __fsqrt_rn(float x) {
  return sqrtf(x);
}
inline float __fdividef(float x, float y) {
  return x / y;
}
inline float __fdiv_rn(float x, float y) {
  return x / y;
}
// The build flags ensure that these operations are not contracted into fused multiply-adds.
inline float __fadd_rn(float x, float y) {
  return x + y;
}
inline float __fsub_rn(float x, float y) {
  return x - y;
}
inline float __fmul_rn(float x, float y) {
  return x * y;
}
inline float __fmaf_rn(float x, float y, float z) {
  return fmaf(x, y, z);
}
inline int __popc(unsigned x) {
  return __builtin_popcount(x);
}
inline int __ffs(int x) {
  return __builtin_ffs(x);
}
inline int __clz(int x) {
  return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x));
}
inline unsigned __umulhi(unsigned x, unsigned y) {
  return static_cast<unsigned>(uint64_t{x} * y >> 32);
}

// NOLINTEND(bugprone-reserved-identifier)
