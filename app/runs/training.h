// The shared part of `fit` and `resume`.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "cli/options.h"
#include "train/saved_run.h"

namespace dtrain {

struct TrainingOptions {
  OutputOptions output;
  std::vector<std::string> sets;
  std::optional<int64_t> epochs;
  std::string directory;  // --output; "" if not given
  std::string step_log;

  /// Returns all --set assignments, followed by the one for --epochs.
  std::vector<std::string> all_sets() const;
};

void add_training_options(Command& command, TrainingOptions& options);

/// Selects how to treat checkpoints that are already in the run directory.
enum class Existing {
  keep,   // keep them, but set aside those newer than the resumed one
  clear,  // remove them once the run is known to be able to start
};

/// Locks the directory and calls `work`, which loads and trains. The lock covers the first look at the
/// directory's content, so no other process can train there meanwhile. If the run is rejected, removes
/// everything created for it.
void in_run_directory(RunDirectory directory, const std::function<void()>& work);

/// Trains to the configured end, from a checkpoint or (null) from the beginning, and prints the result.
/// `plan`: by plan_training(), of a configuration by config_to_continue() if there is a checkpoint.
void train(RunPlan plan, const RunDirectory& directory, const Checkpoint* checkpoint, Existing existing,
           const TrainingOptions& options);

}  // namespace dtrain
