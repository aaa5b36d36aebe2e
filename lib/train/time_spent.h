// Time spent by a run, by category.
#pragma once

#include <algorithm>
#include <chrono>

#include "base/json.h"
#include "base/stopwatch.h"
#include "data/loader/read_seconds.h"

namespace dtrain {

/// The time that the trainer's thread has spent since this process began the run, by category, in seconds.
/// GPUs compute asynchronously, so on GPUs `computing` is the time spent waiting for them, and includes the
/// update of the weights.
struct TimeSpent {
  double waiting = 0;     // seconds of waiting for samples that are read ahead but not ready
  double copying = 0;     // seconds of copying batches to devices, including reading and converting them
  double computing = 0;   // seconds of forward and backward
  double updating = 0;    // seconds of summing gradients over the replicas, and running the optimizer
  double validating = 0;  // seconds of evaluating the validation split, including reading it
  double saving = 0;      // seconds of waiting for checkpoints to be written
  double total = 0;       // wall time, including time outside every category
  ReadSeconds reading;    // total time of all threads that read ahead, in addition to the categories above

  Json to_json() const {
    return Json::object()
        .set("waiting", waiting)
        .set("copying", copying)
        .set("computing", computing)
        .set("updating", updating)
        .set("validating", validating)
        .set("saving", saving)
        .set("total", total)
        .set("reading", Json::object()
                            .set("files", reading.files)
                            .set("decoding", reading.decoding)
                            .set("rest", reading.rest));
  }
};

/// Measures the steps of a run. A step begins at the end of the previous step, at the beginning of an epoch
/// or after a save.
class RunClock {
 public:
  using Clock = std::chrono::steady_clock;
  /// `begin`: the time at which the command began to plan the run.
  explicit RunClock(Clock::time_point begin) : begin_(begin), run_begin_(begin) {}

  void begin_run() { run_begin_ = Clock::now(); }
  void begin_epoch() {
    begin_step();
    epoch_waited_ = spent_.waiting;
    epoch_in_steps_ = in_steps_;
  }
  void begin_step() { lap_ = Clock::now(); }
  /// Ends the step and returns its duration in seconds.
  double end_step() {
    const auto now = Clock::now();
    step_seconds_ = std::chrono::duration<double>(now - lap_).count();
    lap_ = now;
    in_steps_ += step_seconds_;
    return step_seconds_;
  }

  /// The categories that are measured by Stopwatches.
  TimeSpent& spent() { return spent_; }
  /// Returns all categories, except the time of threads that read ahead.
  TimeSpent summary() const {
    TimeSpent spent = spent_;
    spent.computing = std::max(0.0, in_steps_ - spent.waiting - spent.copying - spent.updating);
    spent.total = seconds_since(run_begin_);
    return spent;
  }
  /// Seconds of the last step.
  double step_seconds() const { return step_seconds_; }
  double seconds_since_begin() const { return seconds_since(begin_); }
  /// Returns how much of this process's time in the epoch's steps was spent waiting for samples, as a
  /// fraction.
  double waiting_in_epoch() const {
    return std::clamp((spent_.waiting - epoch_waited_) / std::max(in_steps_ - epoch_in_steps_, 1e-9), 0.0,
                      1.0);
  }

 private:
  Clock::time_point begin_, run_begin_, lap_;
  TimeSpent spent_;  // all categories except `computing` and `total`
  double step_seconds_ = 0, in_steps_ = 0;
  // Values of spent_.waiting and in_steps_ when this process began the epoch.
  double epoch_waited_ = 0, epoch_in_steps_ = 0;
};

}  // namespace dtrain
