// What a run says of itself while it goes on.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"

namespace dtrain {

/// Where an epoch stands.
struct Progress {
  int64_t epoch = 0, epochs = 0;  // epoch from 1
  int64_t step = 0, steps = 0;    // in the epoch, done and in all
  int64_t global_step = 0;
  double step_loss = 0;  // of this step's batch alone
  /// What RunConfig's totals that are numbers come to so far, by name, over the epoch's samples ("loss"
  /// first). Computed when it is called, as not every step is shown; only within on_step().
  std::function<std::vector<std::pair<std::string, double>>()> means;
  double learning_rate = 0;
  double samples_per_second = 0;
  double seconds_left = 0;      // of the epoch
  double run_seconds_left = 0;  // to the configured end, validation included
  double waiting = 0;           // the share of the epoch's time that steps waited for samples, 0 to 1
};

/// Shows a person what happens; all calls come from the trainer's thread.
class Observer {
 public:
  virtual ~Observer() = default;
  /// What begins now may take long; it has ended when the next call comes.
  virtual void on_wait(const std::string& /*what*/) {}
  virtual void on_step(const Progress&) {}
  /// The epoch (from 1) is being validated: batch `step` (from 1) of `steps` comes next.
  virtual void on_validation(int64_t /*epoch*/, int64_t /*epochs*/, int64_t /*step*/, int64_t /*steps*/) {}
  /// `record` is the epoch's line of metrics.jsonl.
  virtual void on_epoch(const Json& /*record*/, int64_t /*epochs*/) {}
  virtual void on_note(const std::string&) {}
  virtual void on_warning(const std::string&) {}
};

}  // namespace dtrain
