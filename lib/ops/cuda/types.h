// Element types on the device. Elements are loaded and stored in their own type; computations use float.
#pragma once

#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <string>

#include "base/dtype.h"
#include "base/error.h"

namespace dtrain::cuda {

__host__ __device__ inline float to_float(float x) {
  return x;
}
__host__ __device__ inline float to_float(__nv_bfloat16 x) {
  return __bfloat162float(x);
}
__host__ __device__ inline float to_float(__half x) {
  return __half2float(x);
}

__host__ __device__ inline float to_float(int32_t x) {
  return static_cast<float>(x);
}
__host__ __device__ inline float to_float(uint8_t x) {
  return static_cast<float>(x);
}

template <class T>
__host__ __device__ inline T from_float(float x);
template <>
__host__ __device__ inline float from_float<float>(float x) {
  return x;
}
template <>
__host__ __device__ inline __nv_bfloat16 from_float<__nv_bfloat16>(float x) {
  return __float2bfloat16_rn(x);
}
template <>
__host__ __device__ inline __half from_float<__half>(float x) {
  return __float2half_rn(x);
}

/// Calls use(T{}) for a floating type; throws Error for other types.
template <class Use>
void with_type(DType type, Use&& use) {
  switch (type) {
    case DType::float32:
      return use(float{});
    case DType::bfloat16:
      return use(__nv_bfloat16{});
    case DType::float16:
      return use(__half{});
    case DType::int32:
    case DType::uint8:
    case DType::float64:
      break;
  }
  throw Error("a GPU cannot compute with elements of type " + std::string(name_of(type)));
}

/// Calls use(T{}) for any type but float64, for which it throws Error.
template <class Use>
void with_any_type(DType type, Use&& use) {
  if (type == DType::int32) return use(int32_t{});
  if (type == DType::uint8) return use(uint8_t{});
  with_type(type, use);
}

/// N elements that are read and written in one access.
template <class T, int N>
struct alignas(sizeof(T) * N) Vector {
  T v[N];
};

/// Elements per 16-byte access.
template <class T>
inline constexpr int kVector = 16 / static_cast<int>(sizeof(T));

template <class T>
inline bool aligned_16(const T* pointer) {
  return reinterpret_cast<uintptr_t>(pointer) % 16 == 0;
}

}  // namespace dtrain::cuda
