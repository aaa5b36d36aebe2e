// Training from a state to the configured end: steps, epochs, validation, callbacks, checkpoints.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/loader.h"
#include "train/background.h"
#include "train/replicas.h"
#include "train/run_config.h"
#include "train/run_directory.h"
#include "train/saved_run.h"
#include "train/training_state.h"

namespace dtrain {

/// The run was asked to stop, and has saved a checkpoint.
class Interrupted : public Error {
 public:
  Interrupted(int signal, const std::string& message) : Error(message), signal_(signal) {}
  int signal() const { return signal_; }

 private:
  int signal_;
};

/// Where an epoch stands; names and values are RunConfig's totals so far ("loss" first), means over the
/// epoch's samples.
struct Progress {
  int64_t epoch = 0, epochs = 0;  // epoch from 1
  int64_t step = 0, steps = 0;    // in the epoch, done and in all
  int64_t global_step = 0;
  double step_loss = 0;  // of this step's batch alone
  std::vector<std::pair<std::string, double>> means;
  double samples_per_second = 0;
  double seconds_left = 0;  // of the epoch
};

/// What a person is shown; all calls come from the trainer's thread.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void on_step(const Progress&) {}
  /// `record` is the epoch's line of metrics.jsonl.
  virtual void on_epoch(const Json& /*record*/, int64_t /*epochs*/) {}
  virtual void on_note(const std::string&) {}
  virtual void on_warning(const std::string&) {}
};

/// A split in the run's batches.
std::unique_ptr<Loader> open_loader(const RunConfig& config, const SplitSpec& split, bool shuffle);

/// The means of totals by name: "loss" (the sum of the heads' losses where there are several), then
/// RunConfig::total_names.
std::vector<std::pair<std::string, double>> means_of(const RunConfig& config, const std::vector<double>& sums,
                                                     int64_t samples);

/// Loss and metrics over a whole split. Stops early, with nothing, once *stop is not 0 (null: never).
std::optional<std::vector<std::pair<std::string, double>>> evaluate_split(const RunConfig& config,
                                                                          Replicas& replicas, Loader& loader,
                                                                          const std::atomic<int>* stop);

class Trainer {
 public:
  /// Opens the data and lays the model on its devices. `stop`: a signal's number once the run is to end.
  Trainer(RunConfig config, RunDirectory directory, Observer& observer, const std::atomic<int>& stop);

  /// Begins with fresh weights.
  void start();
  /// Goes on from a checkpoint; where its optimizer is another, its slots start anew, with a warning.
  void restore(const Checkpoint& checkpoint);
  /// The best so far is not there any more: the next one is.
  void forget_best() { state_.best.reset(); }
  /// To the configured end, or until a callback ends it. Saves a checkpoint at its end, always. Throws
  /// Interrupted.
  void run();

  const TrainingState& state() const { return state_; }
  const RunConfig& config() const { return config_; }
  Replicas& replicas() { return *replicas_; }

 private:
  using Clock = std::chrono::steady_clock;

  void check_data_goes_on(const std::string& path);
  void take_callbacks(std::vector<TrainingState::OfCallback> saved);
  double learning_rate_at(int64_t step) const;
  void train_epoch();
  /// Takes in the steps under way but for the last so many.
  void finish_steps(int most_pending);
  void finish_step();
  void finish_epoch();
  bool update_best(const MetricLookup& metric);
  void report(double step_loss);
  /// False, after a warning, where writing failed.
  bool attempt(const std::function<void()>& write);
  /// Writes a checkpoint of now to the disk before it returns.
  void save();
  /// That, unless this step's stands there.
  void save_what_is_not();
  /// Begins to, and lets training go on meanwhile. `best_before`: what the best is again if that fails.
  void save_behind(const std::optional<TrainingState::Best>& best_before);
  /// Takes in how the save that is under way ended, if there is one.
  void finish_save();
  std::function<void()> writing(const HostArrays& arrays);
  bool due(Interval::Unit unit, int64_t count) const;
  void check_stop();

  RunConfig config_;
  RunDirectory directory_;
  Observer& observer_;
  const std::atomic<int>& stop_;
  std::unique_ptr<Loader> loader_, validation_;
  std::unique_ptr<Replicas> replicas_;
  std::map<std::string, DataIdentity> data_;  // by split, as it was opened
  TrainingState state_;
  bool metrics_whole_ = true;     // the file, so that lines can be added to it
  bool samples_checked_ = false;  // once is enough
  int64_t saved_step_ = -1;
  Clock::time_point last_save_, lap_;
  struct Save {
    int64_t step;
    std::optional<TrainingState::Best> best_before;
  };
  std::optional<Save> save_under_way_;
  std::unique_ptr<Background> background_;  // the last member: it reads from the replicas' memory
};

}  // namespace dtrain
