// The interface through which a plan gathers sharded parameters and reduces sharded gradients.
#pragma once

#include "collective/collective.h"

namespace dtrain {

/// Sharded parameters and gradients, as seen by one replica. All replicas make the same calls in the same
/// order. Ranges are ranges of elements (floats) of the ParameterLayout.
class StateShards {
 public:
  virtual ~StateShards() = default;
  /// Begins a pass over the layers. `first_time`: the pass runs for the first time, so its operations may
  /// allocate memory between the calls below (DeviceCollective in collective/collective.h states the
  /// consequences).
  virtual void begin(bool first_time) = 0;
  /// Starts to gather the parameters in `range` from the replicas that store them, and writes them to `to`.
  /// If `to` is null, this replica only takes part in the collective call.
  virtual void gather(Range range, float* to) = 0;
  /// Makes operations that are enqueued after this call wait for the gathered parameters.
  virtual void join() = 0;
  /// Sums the replicas' gradients in `range`. `gradient`: this replica's gradient of the range; null if this
  /// replica has none. Each replica adds its shard of the sum to its gradient of the step.
  virtual void reduce(Range range, const float* gradient) = 0;
};

}  // namespace dtrain
