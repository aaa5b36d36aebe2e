// Read access to the last step's gradient.
#pragma once

#include <algorithm>
#include <vector>

#include "collective/collective.h"
#include "engine/update/update.h"
#include "engine/worker.h"

namespace dtrain {

/// Locations of the parts of the last step's gradient, one part per replica.
class LastGradient {
 public:
  explicit LastGradient(size_t replicas) : parts_(replicas) {}

  /// Records that the step's gradient of `range` is at `values` in the memory of `worker`. The gradient must
  /// stay there until the next step begins. Each rank calls this function on its own thread, for a different
  /// range.
  void set(int rank, Worker& worker, const float* values, Range range) {
    parts_[static_cast<size_t>(rank)] = {&worker, values, range};
  }

  /// Implements SlotState::read_gradient().
  bool read(const Update& update, Range range, float* to) const {
    for (const Part& part : parts_) {
      const Range both = overlap(range, part.range);
      if (!part.worker || both.size() == 0) continue;
      Context& context = part.worker->context();
      StepState state;
      context.copy_to_host(&state, part.worker->state(), sizeof(state));
      float* const values = to + (both.begin - range.begin);
      context.copy_to_host(values, part.values + (both.begin - part.range.begin),
                           static_cast<size_t>(both.size()) * sizeof(float));
      if (update.needs_directions()) continue;  // directions are neither scaled nor clipped
      const float most = update.clip_value();
      for (int64_t i = 0; i < both.size(); ++i)
        values[i] = std::clamp(values[i] * state.gradient.gradient_scale, -most, most);
    }
    return parts_.front().worker != nullptr;
  }

 private:
  struct Part {
    Worker* worker = nullptr;  // null: not set yet
    const float* values = nullptr;
    Range range;
  };
  std::vector<Part> parts_;  // indexed by rank
};

}  // namespace dtrain
