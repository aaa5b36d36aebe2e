// Interface for reporting the progress of a run.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"

namespace dtrain {

/// Progress of an epoch.
struct Progress {
  int64_t epoch = 0, epochs = 0;  // epoch counts from 1
  int64_t step = 0, steps = 0;    // steps of this epoch: done, and in total
  int64_t global_step = 0;
  double step_loss = 0;  // loss of this step's batch only
  /// Returns the names and the means of the run's losses and metrics that are numbers, over the samples of
  /// the epoch so far. "loss" comes first. This is a function because the means need not be computed for
  /// steps that are not shown. It must be called only within on_step().
  std::function<std::vector<std::pair<std::string, double>>()> means;
  double learning_rate = 0;
  double samples_per_second = 0;
  double seconds_left = 0;      // estimated seconds left in this epoch
  double run_seconds_left = 0;  // estimated seconds to the configured end, including validation
  double waiting = 0;           // fraction (0 to 1) of this epoch's step time spent waiting for samples
};

/// Receives the events of a run; all calls come from the trainer's thread.
class Observer {
 public:
  virtual ~Observer() = default;
  /// Called when a long operation begins. The operation has ended when another function of the observer is
  /// called.
  virtual void on_wait(const std::string& /*what*/) {}
  virtual void on_step(const Progress&) {}
  /// Called before each batch of the validation in an epoch: batch `step` of `steps`. Epochs and batches are
  /// counted from 1.
  virtual void on_validation(int64_t /*epoch*/, int64_t /*epochs*/, int64_t /*step*/, int64_t /*steps*/) {}
  /// Called when an epoch has ended. `record`: the epoch's line of metrics.jsonl.
  virtual void on_epoch(const Json& /*record*/, int64_t /*epochs*/) {}
  virtual void on_note(const std::string&) {}
  virtual void on_warning(const std::string&) {}
};

}  // namespace dtrain
