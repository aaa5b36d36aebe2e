// When a run saves and how: in the background or at once, the best, and what is done where saving fails.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/replicas.h"
#include "run/record/metrics_table.h"
#include "run/record/run_directory.h"
#include "run/record/training_state.h"
#include "run/run_config.h"
#include "train/background.h"
#include "train/observer.h"

namespace dtrain {

/// Used by the trainer's thread and, but for poll(), while no steps are under way. A save that fails is a
/// warning, and is tried again at the next occasion: a disk that is full for a while must not end a run. But
/// where a callback wants finite weights and a save finds others, the call that waits for it throws Error.
class Checkpointing {
 public:
  /// Refers to all of these. Make it before the replicas bind this thread. `writes_files`: whether this
  /// process is the one that writes; the others copy what is saved from their devices, as all must at once,
  /// and no more.
  Checkpointing(const RunConfig& config, RunDirectory directory, TrainingState& state, Observer& observer,
                bool writes_files = true);

  /// The run begins: its directory, configuration and metrics are written. `on_disk`: the state's checkpoint
  /// stands there already. Refers to the replicas, which must live longer.
  void begin(Replicas& replicas, bool on_disk, int64_t steps_per_epoch);

  /// Whether the configuration wants a checkpoint once `step` steps are done, or now that an epoch is.
  bool due_after_step(int64_t step) const;
  bool due_after_epoch() const;

  /// Begins to write a checkpoint of now, and lets training go on meanwhile. `announce`: says so once it is
  /// there.
  void save_async(bool announce = false);
  /// The present state is the best so far. It is saved at once where a save takes less than a twentieth of
  /// the time since the last save began, or that began ten or more seconds ago, or the host has no room for a
  /// copy. Else a copy is held, which is written with the next save, or by poll() once that time has passed;
  /// a run that is killed before then goes on from the save before.
  void save_best();
  /// Takes in a save that has ended, and begins what save_best() has put off. Steps may be under way.
  void poll();
  /// Waits for the save under way, if there is one, and takes in how it ended.
  void wait();
  /// Writes what save_best() has put off before it returns: what is now is not worth saving.
  void save_held();
  /// Adds the last epoch's line to metrics.jsonl and metrics.csv; all of them where lines are missing there.
  void append_metrics();
  /// The run ends: what is now is on the disk when this returns, as a checkpoint and in metrics.jsonl. Throws
  /// Error.
  void end();

  /// How long end() might take.
  double seconds_to_save() const;
  const RunDirectory& directory() const { return directory_; }

 private:
  using Clock = std::chrono::steady_clock;
  /// A state in memory, of which there is no checkpoint yet.
  struct Held {
    bool filled = false;
    TrainingState state;
    std::vector<float> values;
    std::vector<std::vector<float>> slots;
    HostArrays arrays();
  };
  /// A place in a run. A step alone is not one: an epoch's last is also where the next epoch begins.
  struct Point {
    int64_t step = -1, epoch = -1;
    bool operator==(const Point&) const = default;
  };
  /// What is being written.
  struct Task {
    bool holds = false;                            // held_ is written
    Point point = {};                              // and then the state at this point, unless it is none
    std::optional<TrainingState::Best> best = {};  // as the last checkpoint that is written names it
    bool announce = false;
    Clock::time_point start;
  };

  Point now() const { return {state_.step, state_.epoch}; }
  double seconds_of_a_save() const;
  bool may_save_best() const;
  bool attempt(const std::function<void()>& write);
  bool check_directory();
  void save_if_needed();
  bool hold();
  /// Begins to write what is held, if anything is, and then the state and these arrays (unless null), which
  /// have to stay as they are until the task is finished.
  void start(const HostArrays* arrays, bool announce);
  void finish(bool written);
  void settle_best();
  std::function<void()> checkpoint_task(const HostArrays* arrays);
  std::function<void()> write_task(const TrainingState& state, const HostArrays& arrays) const;
  void complete_state();
  void write_metrics();
  void append_last_metrics();

  const RunConfig& config_;
  RunDirectory directory_;
  TrainingState& state_;
  Observer& observer_;
  bool writes_files_;
  int64_t steps_per_epoch_ = 0;
  Replicas* replicas_ = nullptr;
  Held held_;                                        // the best; the task's alone while there is one
  std::optional<TrainingState::Best> written_best_;  // whose checkpoint is on the disk
  std::optional<Task> task_;                         // under way
  Point saved_;
  bool complete_ = false;      // the directory: it has the configuration
  bool metrics_whole_ = true;  // the files, so that lines can be added to them
  MetricsTable table_;         // of the history
  double longest_save_ = 0;    // seconds
  Clock::time_point last_save_;
  Clock::time_point ended_;  // the last save: set by its thread, read once that was waited for
  Background background_;    // the last member: it reads what the others hold
};

}  // namespace dtrain
