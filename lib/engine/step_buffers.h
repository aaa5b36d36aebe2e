// The scalars of a step on their way to a device, and its totals on their way back.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>

#include "device/device.h"
#include "engine/worker.h"
#include "ops/specs.h"

namespace dtrain {

/// Sends a step's scalars to a device and fetches its totals. There are two sets of host buffers and events,
/// which steps use alternately (turn() is 0 or 1), so that one step can be prepared while the previous one
/// computes. A captured graph uses one set.
class StepBuffers {
 public:
  /// `count`: number of totals, at least 1. `factors`: number of factors of losses. Keeps a reference to the
  /// worker.
  StepBuffers(Worker& worker, size_t count, size_t factors);

  /// Starts a step. Waits for the step before the previous one, because both use the same buffers. `factors`:
  /// the factors of the gradients of losses; empty in steps that compute no gradients.
  void begin(const StepNumbers& numbers, std::span<const float> factors);
  /// Undoes begin(): totals() refers to the previous step, which may still be running.
  void undo() { turn_ = 1 - turn_; }
  /// Index of the current step's buffers. CapturedSteps::capture() changes it temporarily, to capture a graph
  /// for each index.
  size_t& turn() { return turn_; }

  // The following calls enqueue work on the device, which becomes part of a captured graph.

  /// Sends the numbers, and computes loss_scales().
  void send_numbers();
  void clear_totals();
  void fetch_totals();

  /// Records that all work of the step has been enqueued.
  void end() { done_[turn_]->record(); }
  /// Waits for the totals of the last step (`back` 0) or of the step before it (`back` 1) and returns them.
  /// Valid until the next call.
  std::span<const double> totals(int back);

  double* device_totals() const { return static_cast<double*>(totals_.data()); }
  /// Returns a device array of each factor times GradientScale::loss_scale; null if there are no factors.
  const float* loss_scales() const { return loss_scales_.f32(); }
  size_t count() const { return count_; }
  size_t bytes() const { return totals_bytes() + loss_scales_.bytes() + device_factors_.bytes(); }
  size_t host_bytes() const { return 3 * totals_bytes() + host_factors_.bytes(); }

 private:
  size_t totals_bytes() const { return count_ * sizeof(double); }

  Worker& worker_;
  size_t count_, factors_;
  Buffer totals_, host_numbers_, host_totals_;
  // Empty without factors. device_factors_ has the factors and then a 0, the offset of the
  // operation that scales them. host_factors_ has two such arrays, one for each turn.
  Buffer loss_scales_, device_factors_, host_factors_;
  std::array<std::unique_ptr<Event>, 2> done_;
  size_t turn_ = 0;
};

}  // namespace dtrain
