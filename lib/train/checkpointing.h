// Saves the checkpoints of a run: decides when to save, saves in the background or at once, keeps the best
// epoch, and handles saves that fail.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/thread_pool.h"
#include "engine/engine.h"
#include "run/record/metrics_table.h"
#include "run/record/run_directory.h"
#include "run/record/training_state.h"
#include "run/run_plan.h"
#include "train/observer.h"

namespace dtrain {

/// Saves the checkpoints of a run. To be used by the trainer's thread and, except for poll(), only while no
/// steps are running. A failed save only causes a warning, and the next save tries again, so that a disk that
/// is full for some time does not end a run. There is one exception: if a callback wants finite weights and a
/// save finds non-finite weights, the call that waits for the save throws Error.
class Checkpointing {
 public:
  /// Keeps references to all arguments except `directory`. Construct it before the engine binds this thread
  /// to a core. Process 0 of the plan's World writes the files; the other processes only copy state from
  /// their devices, which is a collective operation.
  Checkpointing(const RunPlan& plan, RunDirectory directory, TrainingState& state, Observer& observer);

  /// Starts the run: writes its directory, configuration and metrics. `on_disk`: whether a checkpoint of the
  /// current state already exists. Keeps a reference to the engine, which must outlive this object.
  void begin(Engine& engine, bool on_disk, int64_t steps_per_epoch);

  /// Returns whether the configuration asks for a checkpoint after `step` steps, or after the epoch that has
  /// just ended.
  bool due_after_step(int64_t step) const;
  bool due_after_epoch() const;

  /// Starts to write a checkpoint of the current state in the background. `announce`: whether to tell the
  /// user when the checkpoint has been written.
  void save_async(bool announce = false);
  /// Records the current state as the best state so far. Saves it at once if a save takes less than a
  /// twentieth of the time since the last save began, if the last save began at least ten seconds ago, or if
  /// the host does not have enough memory for a copy. Otherwise stores a copy in memory. The copy is written
  /// with the next save, or by poll() when enough time has passed. If the run is killed before the copy is
  /// written, it resumes from the previous save.
  void save_best();
  /// Handles a background save that has ended, and starts to write a copy that save_best() has stored. May be
  /// called while steps are running.
  void poll();
  /// Waits for the background save, if there is one, and handles its result. `then`: the part of the warning
  /// about a failed save that tells the user how the run continues.
  void wait(std::string_view then = kContinues);
  /// Writes the copy that save_best() has stored, if there is one, and waits until it is written. Does not
  /// save the current state.
  void save_held();
  /// Appends the line of the last epoch to metrics.jsonl and metrics.csv. If lines are missing in the files,
  /// writes the whole files again.
  void append_metrics();
  /// Ends the run. Afterwards, the current state has been saved as a checkpoint, and its metrics are in
  /// metrics.jsonl. Throws Error if this fails.
  void end();

  /// Returns an estimate of the seconds that end() takes.
  double seconds_to_save() const;
  const RunDirectory& directory() const { return directory_; }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::string_view kContinues = "training continues";
  /// A copy of a state in memory that has not been saved yet.
  struct Held {
    bool filled = false;
    TrainingState state;
    std::vector<float> values;
    std::vector<std::vector<float>> slots;
    HostArrays arrays();
  };
  /// A position in a run. The step alone is ambiguous: the last step of one epoch is also the start of the
  /// next.
  struct Point {
    int64_t step = -1, epoch = -1;
    bool operator==(const Point&) const = default;
  };
  /// A save that is in progress.
  struct Task {
    bool holds = false;  // whether the task writes held_
    // Position of the state that the task writes in addition to held_. Has the default value if the task
    // writes only held_.
    Point point = {};
    std::optional<TrainingState::Best> best = {};  // best epoch according to the last checkpoint written
    bool announce = false;
    Clock::time_point start;
  };

  Point now() const { return {state_.step, state_.epoch}; }
  double seconds_of_a_save() const;
  bool may_save_best() const;
  /// If the state is divided among processes, returns the value of `mine` in process 0, because all processes
  /// must save at the same time. Otherwise returns `mine`.
  bool agreed(bool mine) const;
  bool attempt(const std::function<void()>& write, std::string_view then = kContinues);
  bool check_directory();
  /// Saves the current state at the end of the run, unless it is on disk. While the disk is full, removes
  /// older checkpoints and tries again. Never removes the newest existing checkpoint or the best one. Throws
  /// Error if the state cannot be saved.
  void save_if_needed();
  bool hold();
  /// Starts to write the held copy, if any, and then the state with `arrays` (unless null). The arrays must
  /// not change until the task is finished.
  void start(const HostArrays* arrays, bool announce);
  /// Ends the task. `written`: whether its files are on disk.
  void finish(bool written);
  void settle_best();
  /// Returns the function that runs a task on the thread of writer_.
  std::function<void()> checkpoint_task(const HostArrays* arrays);
  std::function<void()> write_task(const TrainingState& state, const HostArrays& arrays) const;
  void complete_state();
  void write_metrics();
  void append_last_metrics();

  const RunConfig& config_;
  RunDirectory directory_;
  TrainingState& state_;
  Observer& observer_;
  World& world_;
  bool writes_files_;
  int64_t steps_per_epoch_ = 0;
  Engine* engine_ = nullptr;
  Held held_;  // the best state; while a task runs, only the task uses it
  std::optional<TrainingState::Best> written_best_;  // best epoch whose checkpoint is on disk
  std::optional<Task> task_;                         // save in progress
  Point saved_;
  bool is_last_ = false;       // whether the run ends after the current save
  bool complete_ = false;      // whether the configuration has been written to the directory
  bool metrics_whole_ = true;  // whether the metrics files are complete, so that lines can be appended
  MetricsTable table_;         // metrics.csv rows of the history
  double longest_save_ = 0;    // seconds
  Clock::time_point last_save_;
  Clock::time_point ended_;         // end of the last save; set by the task, read after waiting for the task
  ThreadPool writer_{"saving", 1};  // declared last, because its task uses the other members
};

}  // namespace dtrain
