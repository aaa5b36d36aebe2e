// Merge operations and their gradients, one element at a time.
#pragma once

#include "base/host_device.h"
#include "ops/merging.h"

namespace dtrain::math {

/// Merges values one by one: start with the first value, call add() for each of the other values in order,
/// and call finish() at the end. NaN stays NaN.
struct Merge {
  MergeKind kind;
  float count = 1;  ///< number of values

  DTRAIN_HOST_DEVICE float add(float merged, float next) const {
    switch (kind) {
      case MergeKind::subtract:
        return merged - next;
      case MergeKind::average:
        return merged + next;
      case MergeKind::maximum:
        return next > merged || next != next ? next : merged;
      case MergeKind::minimum:
        return next < merged || next != next ? next : merged;
    }
    return merged;
  }
  DTRAIN_HOST_DEVICE float finish(float merged) const {
    return kind == MergeKind::average ? merged / count : merged;
  }
  /// Returns true if the gradient depends on the values (for maximum and minimum). In this case, only the
  /// first of the largest (smallest) values gets a gradient.
  DTRAIN_HOST_DEVICE bool selects() const { return kind == MergeKind::maximum || kind == MergeKind::minimum; }
  /// Returns the gradient of one value. Only for kinds for which selects() is false.
  DTRAIN_HOST_DEVICE float gradient(float diff, bool is_first) const {
    if (kind == MergeKind::average) return diff / count;
    return is_first ? diff : -diff;
  }
};

}  // namespace dtrain::math
