// The shared part of `fit` and `resume`.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "cli/options.h"
#include "run/run_plan.h"
#include "train/saved_run.h"

namespace dtrain {

struct TrainingOptions {
  OutputOptions output;
  std::vector<std::string> sets;
  std::optional<int64_t> epochs;
  std::string directory;  // --output; "" if not given
  std::string step_log;

  /// Returns all --set assignments, followed by the assignment for --epochs.
  std::vector<std::string> all_sets() const;
};

void add_training_options(Command& command, TrainingOptions& options);

/// Selects how to treat checkpoints that are already in the run directory.
enum class Existing {
  keep,   // keep them, but set aside checkpoints newer than the resumed one
  clear,  // remove them once it is certain that the run can start
};

/// Locks the directory and calls `work`, which loads the configuration and trains. The directory is locked
/// before `work` examines its content, so no other process can begin to train there in the meantime. If the
/// run cannot start, removes everything that was created for it.
void in_run_directory(RunDirectory directory, const std::function<void()>& work);

/// Runs `work`. If it fails, reports the failure to the other processes of the run, which then end, too.
void in_world(World& world, const std::function<void()>& work);

/// Takes part in the training of the run that process 0 trains. All processes other than process 0 must call
/// this function instead of train().
void train_along(World& world);

/// Sends the run to the other processes, which call train_along(), and plans the run. If there is a
/// checkpoint, `config` is the result of config_to_continue().
RunPlan share_and_plan(RunConfig config, World& world, const RunDirectory& directory,
                       const Checkpoint* checkpoint);

/// Trains to the configured end and prints the result. Begins at `checkpoint` or, if it is null, at step 0.
/// `plan` is the result of share_and_plan().
void train(RunPlan plan, const RunDirectory& directory, const Checkpoint* checkpoint, Existing existing,
           const TrainingOptions& options);

}  // namespace dtrain
