// Reads decimal numbers fast, and reports numbers that need a slower method.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

namespace dtrain {

namespace decimal {

__extension__ using Uint128 = unsigned __int128;

constexpr int kMostPower = 27;   // 5^27 is the largest power of 5 below 2^63
constexpr int kMostExact = 22;   // 10^22 is the largest power of 10 that a double holds exactly
constexpr int kMostDigits = 19;  // any number with this many digits fits in 64 bits

/// 10^n is approximately mantissa * 2^exponent. The top bit of the mantissa is set. The mantissa is too small
/// by at most 1.
struct Power {
  uint64_t mantissa = 0;
  int exponent = 0;
};

constexpr Power power_of_ten(int n) {
  uint64_t five = 1;
  for (int i = 0; i < (n < 0 ? -n : n); ++i) five *= 5;
  if (n >= 0) {
    const int shift = std::countl_zero(five);
    return {five << shift, n - shift};
  }
  const Uint128 quotient = (Uint128{1} << 127) / five;
  const auto high = static_cast<uint64_t>(quotient >> 64);
  const int bits =
      high != 0 ? 128 - std::countl_zero(high) : 64 - std::countl_zero(static_cast<uint64_t>(quotient));
  return {static_cast<uint64_t>(quotient >> (bits - 64)), bits - 64 - 127 + n};
}

inline constexpr auto kPowers = [] {
  std::array<Power, 2 * kMostPower + 1> all{};
  for (size_t i = 0; i < all.size(); ++i) all[i] = power_of_ten(static_cast<int>(i) - kMostPower);
  return all;
}();

inline constexpr auto kExact = [] {
  std::array<double, kMostExact + 1> all{};
  double power = 1;
  for (double& one : all) {
    one = power;
    power *= 10;
  }
  return all;
}();

/// are_digits() tests whether eight bytes are digits, and number_of() converts eight digits to a number
/// (Lemire 2021, "Number parsing at a gigabyte per second").
inline bool are_digits(uint64_t word) {
  return ((word & 0xf0f0f0f0f0f0f0f0) | (((word + 0x0606060606060606) & 0xf0f0f0f0f0f0f0f0) >> 4)) ==
         0x3333333333333333;
}
inline uint64_t number_of(uint64_t word) {
  word -= 0x3030303030303030;
  word = word * 10 + (word >> 8);
  return (((word & 0x000000ff000000ff) * 0x000f424000000064 +
           ((word >> 16) & 0x000000ff000000ff) * 0x0000271000000001) >>
          32) &
         0xffffffff;
}

/// Computes the double nearest to mantissa * 10^power. Returns false if this method cannot determine the
/// nearest double.
inline bool to_double(uint64_t mantissa, int power, double& out) {
  if (mantissa <= uint64_t{1} << 53 && power >= -kMostExact && power <= kMostExact) {
    const auto exact = static_cast<double>(mantissa);
    out =
        power < 0 ? exact / kExact[static_cast<size_t>(-power)] : exact * kExact[static_cast<size_t>(power)];
    return true;
  }
  if (mantissa == 0 || power < -kMostPower || power > kMostPower) return false;
  // This is the method of Eisel and Lemire, but with only 64 of the 128 bits of each power. Therefore the
  // upper 64 bits of the product are too small by less than three units. This error matters only near the
  // midpoint between two doubles.
  const int place = power + kMostPower;
  const Power& ten = kPowers[static_cast<size_t>(place)];
  const int shift = std::countl_zero(mantissa);
  Uint128 product = static_cast<Uint128>(mantissa << shift) * ten.mantissa;
  int exponent = ten.exponent - shift + 64;
  if (static_cast<uint64_t>(product >> 64) >> 63 == 0) {
    product <<= 1;
    --exponent;
  }
  const auto high = static_cast<uint64_t>(product >> 64);
  const uint64_t rest = high & 0x7ff;
  if (rest >= 0x3fd && rest <= 0x400) return false;
  const uint64_t significand = (high >> 11) + (rest > 0x400 ? 1 : 0);
  out = static_cast<double>(significand) *
        std::bit_cast<double>(static_cast<uint64_t>(exponent + 11 + 1023) << 52);
  return true;
}

inline bool is_digit(char c) {
  return static_cast<unsigned char>(c - '0') < 10;
}

}  // namespace decimal

/// Reads the number at the beginning of [p, end), rounds it to the nearest double, and returns the end of the
/// number. `point` is the decimal separator. Returns null if the text does not begin with a number, or if the
/// number has many digits or a large exponent (std::from_chars can read such numbers).
inline const char* read_decimal(const char* p, const char* end, double& out, char point = '.') {
  using namespace decimal;
  const bool negative = p < end && *p == '-';
  if (p < end && (*p == '-' || *p == '+')) ++p;
  uint64_t mantissa = 0;
  int power = 0;
  const char* const first = p;
  while (p < end && is_digit(*p)) mantissa = mantissa * 10 + static_cast<uint64_t>(*p++ - '0');
  auto digits = p - first;
  if (p < end && *p == point) {
    const char* const fraction = ++p;
    if constexpr (std::endian::native == std::endian::little) {
      for (uint64_t word; end - p >= 8; p += 8) {
        std::memcpy(&word, p, sizeof word);
        if (!are_digits(word)) break;
        mantissa = mantissa * 100000000 + number_of(word);
      }
    }
    while (p < end && is_digit(*p)) mantissa = mantissa * 10 + static_cast<uint64_t>(*p++ - '0');
    power = static_cast<int>(fraction - p);
    digits += p - fraction;
  }
  if (digits == 0 || digits > kMostDigits) return nullptr;
  if (p < end && (*p == 'e' || *p == 'E')) {
    ++p;
    const bool below = p < end && *p == '-';
    if (p < end && (*p == '-' || *p == '+')) ++p;
    int exponent = 0;
    const char* const begin = p;
    while (p < end && is_digit(*p) && p - begin < 4) exponent = exponent * 10 + (*p++ - '0');
    if (p == begin) return nullptr;
    power += below ? -exponent : exponent;
  }
  if (!to_double(mantissa, power, out)) return nullptr;
  if (negative) out = -out;
  return p;
}

}  // namespace dtrain
