// Merge operations and their gradients, one element at a time.
#pragma once

#include "base/host_device.h"
#include "ops/merging.h"

namespace dtrain::math {

/// Merges values one by one: start with the first value, add() the others in order, then finish(). NaN stays
/// NaN.
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
  /// Returns true if the gradient depends on the values (maximum, minimum): it then goes only to the first
  /// largest (smallest) value.
  DTRAIN_HOST_DEVICE bool selects() const { return kind == MergeKind::maximum || kind == MergeKind::minimum; }
  /// Returns the gradient of one value, for kinds whose gradient does not depend on the values.
  DTRAIN_HOST_DEVICE float gradient(float diff, bool is_first) const {
    if (kind == MergeKind::average) return diff / count;
    return is_first ? diff : -diff;
  }
};

}  // namespace dtrain::math
