// Transfers the scalars of a step to a device, and the totals of the step to the host.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "device/device.h"
#include "engine/worker.h"
#include "ops/specs.h"

namespace dtrain {

/// Sends a step's scalars to a device and fetches its totals. There are two sets of host buffers and events,
/// which steps use alternately (turn() is 0 or 1). For this reason, one step can be prepared while the
/// previous step computes. Each captured graph uses one of the two sets.
class StepBuffers {
 public:
  /// `count`: number of totals, at least 1. `factors`: number of loss factors (StepRequest::loss_factors).
  /// Keeps a reference to the worker.
  StepBuffers(Worker& worker, size_t count, size_t factors);

  /// Starts a step. Waits for the step before the previous one, because both use the same buffers. `factors`:
  /// the step's loss factors; empty in steps that compute no gradients.
  void begin(const StepNumbers& numbers, std::span<const float> factors);
  /// Undoes begin() after a failure: totals() refers to the previous step again, which may still be running.
  void undo() { turn_ = 1 - turn_; }
  /// Index of the buffers that the current step uses. CapturedSteps::capture() changes the index temporarily,
  /// to capture a graph for each index.
  size_t& turn() { return turn_; }

  // The following functions enqueue work on the device. If the step is being captured, this work becomes part
  // of the graph.

  /// Sends the StepNumbers and the loss factors to the device, and computes loss_scales().
  void send_numbers();
  void clear_totals();
  void fetch_totals();

  /// Records that all work of the step has been enqueued.
  void end() { done_[turn_]->record(); }
  /// Returns the error of the device if it has failed; otherwise "". Also queries the events of the last
  /// steps, because CUDA may not report a failure for a stream without work. Thread-safe.
  std::string failure() const;
  /// Waits for the totals of a step and returns them. `back`: 0 for the last step, 1 for the step before it.
  /// The result is valid until the next call.
  std::span<const double> totals(int back);

  double* device_totals() const { return static_cast<double*>(totals_.data()); }
  /// Returns a device array that contains the product of each factor and GradientScale::loss_scale. Returns
  /// null if there are no factors.
  const float* loss_scales() const { return loss_scales_.f32(); }
  size_t count() const { return count_; }
  size_t bytes() const { return totals_bytes() + loss_scales_.bytes() + device_factors_.bytes(); }
  size_t host_bytes() const { return 3 * totals_bytes() + host_factors_.bytes(); }

 private:
  size_t totals_bytes() const { return count_ * sizeof(double); }

  Worker& worker_;
  size_t count_, factors_;
  Buffer totals_, host_numbers_, host_totals_;
  // These buffers are empty if there are no factors. device_factors_ contains the factors, followed by a 0,
  // which is the offset for the operation that scales the factors. host_factors_ is double-buffered: it
  // contains two such arrays, one for each turn.
  Buffer loss_scales_, device_factors_, host_factors_;
  std::array<std::unique_ptr<Event>, 2> done_;
  size_t turn_ = 0;
};

}  // namespace dtrain
