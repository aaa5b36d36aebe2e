// Which batch fits where one does not.
#pragma once

#include <cstdint>
#include <functional>

namespace dtrain {

/// The largest batch that fits, of those smaller than one that does not; 0 where not even one sample does.
/// `excess_of` says of a batch how many bytes are not there (negative: so many are left), of that one
/// `excess`. What a batch takes is nearly linear in it, so that a few of them have to be asked about.
int64_t largest_batch(const std::function<double(int64_t)>& excess_of, int64_t does_not_fit, double excess);

}  // namespace dtrain
