// Arrays of the element types that the libraries accept.
#pragma once

#include <cstddef>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace dtrain::emulation {

enum class Number { float32, bfloat16, float16 };

inline size_t bytes_of(Number type) {
  return type == Number::float32 ? 4 : 2;
}

inline double read_number(const void* array, Number type, int64_t i) {
  switch (type) {
    case Number::bfloat16:
      return static_cast<double>(__bfloat162float(static_cast<const __nv_bfloat16*>(array)[i]));
    case Number::float16:
      return static_cast<double>(__half2float(static_cast<const __half*>(array)[i]));
    case Number::float32:
      break;
  }
  return static_cast<double>(static_cast<const float*>(array)[i]);
}

inline void write_number(void* array, Number type, int64_t i, double value) {
  const auto rounded = static_cast<float>(value);
  switch (type) {
    case Number::bfloat16:
      static_cast<__nv_bfloat16*>(array)[i] = __float2bfloat16_rn(rounded);
      return;
    case Number::float16:
      static_cast<__half*>(array)[i] = __float2half_rn(rounded);
      return;
    case Number::float32:
      static_cast<float*>(array)[i] = rounded;
  }
}

}  // namespace dtrain::emulation
