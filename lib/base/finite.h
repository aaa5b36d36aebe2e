// Checks for infinities and NaN.
#pragma once

#include <bit>
#include <cstdint>
#include <span>

namespace dtrain {

/// Returns true if no value is infinite or NaN. Runs at about memory bandwidth.
inline bool all_finite(std::span<const float> values) {
  constexpr uint32_t kExponent = 0x7f800000;
  uint32_t bad = 0;
  for (const float value : values) bad |= (std::bit_cast<uint32_t>(value) & kExponent) == kExponent ? 1U : 0U;
  return bad == 0;
}

}  // namespace dtrain
