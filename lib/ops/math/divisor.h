// Division by the same number many times.
#pragma once

#include <cstdint>

#include "base/host_device.h"

namespace dtrain::math {

/// Divides non-negative numbers by a number that is known in advance. A multiplication replaces the division,
/// which is a slow subroutine on a GPU (T. Granlund, P. Montgomery, "Division by invariant integers using
/// multiplication", 1994).
class Divisor {
 public:
  /// The divisor must be at least 1.
  explicit Divisor(int64_t divisor) : divisor_(divisor) {
    while (shift_ < 31 && (int64_t{1} << shift_) < divisor) ++shift_;
    const int64_t rest = (int64_t{1} << shift_) - divisor;
    // If the divisor is larger than 2^31, the quotients of numbers below 2^31 are 0.
    factor_ = rest < 0 ? 0 : static_cast<uint32_t>((rest << 32) / divisor + 1);
  }
  /// Returns a / divisor, rounded down. Numbers from 2^31 on are divided in the usual way.
  DTRAIN_HOST_DEVICE int64_t quotient(int64_t a) const {
    if (a >> 31 != 0) return a / divisor_;
    const auto n = static_cast<uint32_t>(a);
    const auto high = static_cast<uint32_t>(uint64_t{n} * factor_ >> 32);
    return (high + n) >> shift_;
  }

 private:
  int64_t divisor_;
  uint32_t factor_ = 0;
  int shift_ = 0;
};

}  // namespace dtrain::math
