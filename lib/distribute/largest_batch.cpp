#include "distribute/largest_batch.h"

#include <algorithm>
#include <cmath>

namespace dtrain {

/// The search interpolates linearly, but every third probe halves the interval, so that the search is fast in
/// all cases.
int64_t largest_batch(const std::function<double(int64_t)>& excess_of, int64_t does_not_fit, double excess) {
  if (does_not_fit <= 1) return 0;
  int64_t fits = 1;
  double room = -excess_of(fits);
  if (room < 0) return 0;
  for (int probe = 0; does_not_fit - fits > 1; ++probe) {
    const double part = probe % 3 == 2 ? 0.5 : room / (room + excess);
    const auto step = static_cast<int64_t>(part * static_cast<double>(does_not_fit - fits));
    const int64_t batch = std::clamp(fits + step, fits + 1, does_not_fit - 1);
    const double found = excess_of(batch);
    (found > 0 ? does_not_fit : fits) = batch;
    (found > 0 ? excess : room) = std::abs(found);
  }
  return fits;
}

}  // namespace dtrain
