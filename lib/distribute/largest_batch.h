// Which batch fits where one does not.
#pragma once

#include <cstdint>
#include <functional>

namespace dtrain {

/// The largest batch below `does_not_fit` that fits; 0 where not even one sample does. `excess_of(batch)`:
/// the bytes that it needs beyond those that there are (negative: so many are left), which grow with the
/// batch; `excess`: those of `does_not_fit`. It is asked about a few batches, as bytes are nearly linear in
/// them.
int64_t largest_batch(const std::function<double(int64_t)>& excess_of, int64_t does_not_fit, double excess);

}  // namespace dtrain
