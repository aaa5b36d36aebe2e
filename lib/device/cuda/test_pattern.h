// Data for test copies between GPUs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dtrain {

/// Returns `count` numbers that are all different, so that a copy with damaged or misplaced parts differs.
inline std::vector<uint32_t> test_pattern(size_t count) {
  // The factor is odd, so the products are different modulo 2^32.
  constexpr uint32_t kFactor = 2654435761;
  std::vector<uint32_t> numbers(count);
  for (size_t i = 0; i < count; ++i) numbers[i] = static_cast<uint32_t>(i) * kFactor + 1;
  return numbers;
}

}  // namespace dtrain
