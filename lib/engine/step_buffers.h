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
  /// `count`: number of totals, at least 1. Keeps a reference to the worker.
  StepBuffers(Worker& worker, size_t count);

  /// Starts a step: waits for the step before the previous one, whose buffers it uses.
  void begin(const StepNumbers& numbers);
  /// Undoes begin(): totals() refers to the previous step, which may still be running.
  void undo() { turn_ = 1 - turn_; }
  /// Index of the current step's buffers. CapturedSteps::capture() changes it temporarily, to capture a graph
  /// for each.
  size_t& turn() { return turn_; }

  // The following calls enqueue work on the device, which becomes part of a captured graph.

  void send_numbers();
  void clear_totals();
  void fetch_totals();

  /// Records that all work of the step has been enqueued.
  void end() { done_[turn_]->record(); }
  /// Waits for the totals of the last step (`back` 0) or of the one before it (`back` 1) and returns them.
  /// Valid until the next call.
  std::span<const double> totals(int back);

  double* device_totals() const { return static_cast<double*>(totals_.data()); }
  size_t count() const { return count_; }
  size_t bytes() const { return count_ * sizeof(double); }
  size_t host_bytes() const { return 3 * bytes(); }

 private:
  Worker& worker_;
  size_t count_;
  Buffer totals_, host_numbers_, host_totals_;
  std::array<std::unique_ptr<Event>, 2> done_;
  size_t turn_ = 0;
};

}  // namespace dtrain
