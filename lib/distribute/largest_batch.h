// Finds the largest batch size that fits into memory.
#pragma once

#include <cstdint>
#include <functional>

namespace dtrain {

/// Returns the largest batch size below `does_not_fit` that fits; 0 if not even one sample fits.
/// `excess_of(batch)`: bytes needed beyond those available (negative: bytes left), which grow with the batch
/// size. `excess`: that value for `does_not_fit`. Few sizes are tried, because memory is nearly linear in the
/// batch size.
int64_t largest_batch(const std::function<double(int64_t)>& excess_of, int64_t does_not_fit, double excess);

}  // namespace dtrain
