// Element types of arrays.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace dtrain {

/// bfloat16 and float16 are for what a GPU computes with, float64 is for data whose digits float32 would
/// lose, as a data set stores them. Everything that a user names and a model computes with has one of
/// kDataTypes.
enum class DType : uint8_t { float32, bfloat16, float16, int32, uint8, float64 };

inline constexpr std::array kDataTypes{DType::float32, DType::int32, DType::uint8};

/// The size of one element.
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

/// "float32"
std::string_view name_of(DType type);
/// The one of kDataTypes with this name, or nothing.
std::optional<DType> data_type_from(std::string_view name);

}  // namespace dtrain
