// Finds the largest batch size that fits into memory.
#pragma once

#include <cstdint>
#include <functional>

namespace dtrain {

/// Returns the largest batch size below `does_not_fit` that fits into memory, or 0 if not even one sample
/// fits. `excess_of(batch)` returns the needed bytes minus the available bytes. This number must grow with
/// the batch size. It is negative if memory is left. `excess`: excess_of(does_not_fit). The search tries only
/// a few sizes, because the needed memory is almost linear in the batch size.
int64_t largest_batch(const std::function<double(int64_t)>& excess_of, int64_t does_not_fit, double excess);

}  // namespace dtrain
