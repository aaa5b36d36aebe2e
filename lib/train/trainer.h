// Trains a model to the configured end: runs steps, epochs and validation, calls callbacks, and saves
// checkpoints.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "data/loader/loader.h"
#include "engine/engine.h"
#include "run/record/run_directory.h"
#include "run/record/training_state.h"
#include "run/run_plan.h"
#include "train/checkpointing.h"
#include "train/evaluation/evaluation.h"
#include "train/observer.h"
#include "train/requests.h"
#include "train/saved_run.h"
#include "train/time_spent.h"

namespace dtrain {

class EpochReport;  // train/epoch_report.h

/// Thrown after a run was asked to stop and has saved a checkpoint.
class Interrupted : public Error {
 public:
  Interrupted(int signal, const std::string& message) : Error(message), signal_(signal) {}
  int signal() const { return signal_; }

 private:
  int signal_;
};

class Trainer {
 public:
  /// Opens the data and puts the model on its devices. `plan` is the result of plan_training(). `directory`:
  /// the run directory; only process 0 of the plan's World reads and writes files in it. Throws UserError if
  /// the data of the processes differ.
  Trainer(RunPlan plan, RunDirectory directory, Observer& observer, Requests& requests);

  /// Initializes the weights in process 0, or loads them from model.weights, and copies them to all other
  /// processes.
  void start();
  /// Restores a checkpoint; all processes must pass the same checkpoint. If the checkpoint is from a
  /// different optimizer, the optimizer state is reset, with a warning. Throws UserError if a weight is
  /// missing or has a different shape, or if there is too little memory. For a checkpoint within an epoch,
  /// also throws if the data, their order, the batch size, losses or metrics have changed.
  void restore(const Checkpoint& checkpoint);
  /// Forgets the best epoch, whose checkpoint is missing; the next epoch becomes the best.
  void forget_best() { state_.best.reset(); }
  /// Trains to the configured end, or until a callback or train.max_time ends the run, and saves the final
  /// state. Throws Interrupted, after saving, if a stop was requested. Rethrows any other failure. Before it
  /// rethrows, it saves the state after the last finished step, unless a device failed, the loss or the
  /// weights were rejected (by callbacks or check_samples()), or no step was finished. If this save fails,
  /// run() only warns.
  void run();

  const TrainingState& state() const { return state_; }
  const RunPlan& plan() const { return plan_; }
  const RunConfig& config() const { return config_; }
  Engine& engine() { return *engine_; }
  /// The loaders of the training split, and of the validation split (null if there is none).
  const Loader& loader() const { return *loader_; }
  const Loader* validation() const { return validation_.get(); }
  /// Returns the time spent since run() was called.
  TimeSpent time_spent() const;

 private:
  void take_pretrained();
  void check_data_unchanged(const std::string& path);
  void take_callbacks(std::vector<TrainingState::OfCallback> saved);
  double learning_rate_at(int64_t step) const;
  bool train();
  bool train_epoch();
  /// Waits until at most `most_pending` steps are still running.
  void finish_steps(int most_pending);
  void finish_step();
  /// Decisions of the schedule and the callbacks at the end of an epoch.
  struct EpochDecisions {
    Json schedule;  // the schedule's state
    std::vector<TrainingState::OfCallback> callbacks;
    bool stopped = false;
    std::string stop_reason;
    std::vector<std::string> messages;  // messages to show to the user
  };
  bool finish_epoch();
  void take_measures(EpochReport& report, const Measures& measures, const std::string& prefix);
  bool validate_into(EpochReport& report);
  EpochDecisions decide(const MetricLookup& metric) const;
  void wait_for_best();
  void begin_next_epoch(EpochReport& report, EpochDecisions& decisions);
  void announce_epoch(const EpochReport& report, const EpochDecisions& decisions);
  void save_after_epoch(bool improved);
  std::optional<Measures> validate();
  void check_weights();
  void warn_of_monitors(const MetricLookup& metric);
  bool update_best(const MetricLookup& metric);
  void report(double step_loss);
  std::shared_ptr<const Batch> next_batch();
  void launch(const Batch& batch, int64_t step);
  double run_seconds_left(double epoch_seconds_left) const;
  void save_async(bool announce);
  bool should_stop(bool may_save = true);
  bool is_save_due(int64_t step);
  void save_after_failure(int64_t first_step);

  RunPlan plan_;  // plan with the facts of the training split
  const RunConfig& config_ = plan_.config;
  World& world_ = plan_.world;
  Observer& observer_;
  Requests& requests_;
  StopCommand stop_command_;
  int stop_ = 0;  // the signal on which all processes have agreed; 0: none
  std::unique_ptr<Loader> loader_, validation_;
  std::unique_ptr<Engine> engine_;
  std::map<std::string, DataIdentity> data_;  // identities of the opened splits, by name
  TrainingState state_;
  bool samples_checked_ = false;  // samples are checked at most once
  /// Identifies the warnings that were already given: names of metrics that may be inaccurate, and "nan "
  /// followed by the name of a monitor.
  std::set<std::string> warned_;
  int64_t schedule_shift_ = 0;  // RunLength::shift
  bool restored_ = false;
  // False while the last step is being checked, and after a check of the loss or weights has failed.
  bool is_valid_ = true;
  RunClock clock_;
  std::unique_ptr<Checkpointing> checkpointing_;  // the last member, because it reads the engine's memory
};

}  // namespace dtrain
