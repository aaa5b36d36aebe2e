// Reads one number from an array whose type is known only at run time.
#pragma once

#include <cstdint>

#include "base/dtype.h"

namespace dtrain {

inline double number_at(const void* array, DType type, int64_t index) {
  switch (type) {
    case DType::uint8:
      return static_cast<const uint8_t*>(array)[index];
    case DType::int32:
      return static_cast<const int32_t*>(array)[index];
    case DType::float64:
      return static_cast<const double*>(array)[index];
    default:
      return static_cast<double>(static_cast<const float*>(array)[index]);
  }
}

}  // namespace dtrain
