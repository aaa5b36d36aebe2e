// Element types of arrays.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace dtrain {

/// The type of an array's elements. GPUs can also compute in bfloat16 and float16. float64 is used only for
/// data sets: it stores values that float32 would round. kDataTypes contains the types whose names users can
/// write.
enum class DType : uint8_t { float32, bfloat16, float16, int32, uint8, float64 };

inline constexpr std::array kDataTypes{DType::float32, DType::int32, DType::uint8};

/// Returns the size of one element in bytes.
constexpr size_t bytes_of(DType type) {
  switch (type) {
    case DType::float64:
      return 8;
    case DType::float32:
    case DType::int32:
      return 4;
    case DType::bfloat16:
    case DType::float16:
      return 2;
    case DType::uint8:
      break;
  }
  return 1;
}

/// Returns the name, e.g. "float32".
std::string_view name_of(DType type);
/// Returns the type in kDataTypes with this name, or nullopt.
std::optional<DType> data_type_from(std::string_view name);

}  // namespace dtrain
