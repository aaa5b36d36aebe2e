// Element types of arrays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace dtrain {

enum class DType : uint8_t { float32, int32, uint8 };

size_t bytes_of(DType type);
std::string_view name_of(DType type);
/// The type with this name, or nothing.
std::optional<DType> dtype_from(std::string_view name);

template <class T>
inline constexpr DType dtype_of = DType::float32;
template <>
inline constexpr DType dtype_of<int32_t> = DType::int32;
template <>
inline constexpr DType dtype_of<uint8_t> = DType::uint8;

}  // namespace dtrain
