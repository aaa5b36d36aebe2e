// Merging of values and its gradients, one element at a time.
#pragma once

#include "base/host_device.h"
#include "ops/merging.h"

namespace dtrain::math {

/// Merges value after value: begin with the first, add() the others, and finish(). NaN stays NaN.
struct Merge {
  MergeKind kind;
  float count = 1;  ///< of the values

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
  /// Whether the gradient depends on the values. It is that of the first of the largest (smallest) then.
  DTRAIN_HOST_DEVICE bool selects() const { return kind == MergeKind::maximum || kind == MergeKind::minimum; }
  /// The gradient of a value that is not selected by comparison.
  DTRAIN_HOST_DEVICE float gradient(float diff, bool is_first) const {
    if (kind == MergeKind::average) return diff / count;
    return is_first ? diff : -diff;
  }
};

}  // namespace dtrain::math
