// What `fit` and `resume` have in common.
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
  std::string directory;  // --output; "" where not given
  std::string step_log;

  /// All assignments of --set, and that of --epochs behind them.
  std::vector<std::string> all_sets() const;
};

void add_training_options(Command& command, TrainingOptions& options);

/// What becomes of checkpoints that the run directory holds already.
enum class Existing {
  keep,   // they stay, but those newer than the one that is resumed from are set aside
  clear,  // they are removed, once the run is known to be able to begin
};

/// Calls `work`, which loads and trains, with the directory held, so that nobody else trains there from
/// before the first look at what it holds. Where the run is refused, nothing that was made for it stays.
void in_run_directory(RunDirectory directory, const std::function<void()>& work);

/// Trains from a checkpoint, or from the beginning where there is none (null), to the configured end, and
/// says how it went.
void train(RunConfig config, const RunDirectory& directory, const Checkpoint* checkpoint, Existing existing,
           const TrainingOptions& options);

}  // namespace dtrain
