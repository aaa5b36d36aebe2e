#include "data/files/stored_type.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <type_traits>

#include <fmt/format.h>

namespace dtrain {

DType StoredType::dtype() const {
  if (exact) return DType::float64;
  if (kind == Kind::real) return DType::float32;
  return kind == Kind::unsigned_integer && bytes == 1 ? DType::uint8 : DType::int32;
}

bool StoredType::same_bytes() const {
  if (swapped) return false;
  if (exact) return kind == Kind::real && bytes == 8;
  switch (kind) {
    case Kind::real:
    case Kind::signed_integer:
      return bytes == 4;
    default:
      return bytes == 1;
  }
}

std::string StoredType::name() const {
  const char* word = kind == Kind::real ? "float" : kind == Kind::signed_integer ? "int" : "uint";
  return fmt::format("{}{}{}", swapped ? "byte-swapped " : "", word, bytes * 8);
}

namespace {

template <class From>
From load(const std::byte* src, bool swapped) {
  std::array<std::byte, sizeof(From)> raw;
  std::memcpy(raw.data(), src, sizeof(From));
  if (swapped) std::reverse(raw.begin(), raw.end());
  From value;
  std::memcpy(&value, raw.data(), sizeof(From));
  return value;
}

template <class From>
bool fits_int32(From value) {
  using Limits = std::numeric_limits<int32_t>;
  if constexpr (std::is_signed_v<From>)
    return sizeof(From) <= 4 || (value >= Limits::min() && value <= Limits::max());
  else
    return sizeof(From) < 4 || value <= static_cast<uint32_t>(Limits::max());
}

template <class From, class To>
int64_t decode_as(const std::byte* src, To* dst, int64_t count, bool swapped) {
  for (int64_t i = 0; i < count; ++i) {
    const From value = load<From>(src + static_cast<size_t>(i) * sizeof(From), swapped);
    if constexpr (std::is_same_v<To, double>) {
      // Every value fits.
    } else if constexpr (std::is_integral_v<From>) {
      if (!fits_int32(value)) return i;
    } else if constexpr (sizeof(From) > sizeof(To)) {
      if (std::isfinite(value) && !std::isfinite(static_cast<To>(value))) return i;
    }
    dst[i] = static_cast<To>(value);  // NOLINT(bugprone-signed-char-misuse): an int8 here is not a character.
  }
  return count;
}

}  // namespace

int64_t decode(StoredType type, const void* src, void* dst, int64_t count) {
  const auto* from = static_cast<const std::byte*>(src);
  if (type.same_bytes()) {
    std::memcpy(dst, from, static_cast<size_t>(count) * static_cast<size_t>(type.bytes));
    return count;
  }
  const auto to_int = [&]<class From>(From) {
    if (type.exact) return decode_as<From>(from, static_cast<double*>(dst), count, type.swapped);
    return decode_as<From>(from, static_cast<int32_t*>(dst), count, type.swapped);
  };
  const auto to_float = [&]<class From>(From) {
    if (type.exact) return decode_as<From>(from, static_cast<double*>(dst), count, type.swapped);
    return decode_as<From>(from, static_cast<float*>(dst), count, type.swapped);
  };
  using Kind = StoredType::Kind;
  switch (static_cast<int>(type.kind) * 16 + type.bytes) {
    case static_cast<int>(Kind::unsigned_integer) * 16 + 1:
      if (type.exact) return decode_as<uint8_t>(from, static_cast<double*>(dst), count, false);
      std::memcpy(dst, from, static_cast<size_t>(count));  // a single byte has no byte order
      return count;
    case static_cast<int>(Kind::unsigned_integer) * 16 + 2:
      return to_int(uint16_t{});
    case static_cast<int>(Kind::unsigned_integer) * 16 + 4:
      return to_int(uint32_t{});
    case static_cast<int>(Kind::unsigned_integer) * 16 + 8:
      return to_int(uint64_t{});
    case static_cast<int>(Kind::signed_integer) * 16 + 1:
      return to_int(int8_t{});
    case static_cast<int>(Kind::signed_integer) * 16 + 2:
      return to_int(int16_t{});
    case static_cast<int>(Kind::signed_integer) * 16 + 4:
      return to_int(int32_t{});
    case static_cast<int>(Kind::signed_integer) * 16 + 8:
      return to_int(int64_t{});
    case static_cast<int>(Kind::real) * 16 + 4:
      return to_float(float{});
    case static_cast<int>(Kind::real) * 16 + 8:
      return to_float(double{});
    default:
      throw std::logic_error("decode: unknown storage type");
  }
}

}  // namespace dtrain
