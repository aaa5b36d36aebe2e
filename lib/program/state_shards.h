// Parameters and gradients that are in parts at the replicas, as a plan asks for them.
#pragma once

#include "collective/collective.h"

namespace dtrain {

/// The state in parts, as one of the replicas sees it. All replicas make the same calls in the same order.
/// Ranges are of the layout.
class StateShards {
 public:
  virtual ~StateShards() = default;
  /// Whether the calls to come are of work that was never done before, so that what is called between them
  /// may allocate (collective.h says when that must not be).
  virtual void begin(bool first_time) = 0;
  /// Begins to bring the parameters in `range` to `to`, from whoever has them; null: only takes part.
  virtual void gather(Range range, float* to) = 0;
  /// Operations that are enqueued from now on find what has been gathered.
  virtual void join() = 0;
  /// Sums the replicas' gradients in `range`, this one's at `gradient` (null: it has none); each adds the
  /// part that it keeps to what it has of the step's gradient.
  virtual void reduce(Range range, const float* gradient) = 0;
};

}  // namespace dtrain
