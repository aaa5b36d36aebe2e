// The trained model that evaluate and predict use.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "cli/command_line.h"
#include "data/dataset_spec.h"
#include "train/saved_run.h"

namespace dtrain {

/// Which model, and changes of its configuration.
struct ModelOptions {
  std::string command;  // that uses the model
  std::string path;
  std::vector<std::string> sets;
  bool best = false, newest = false;
};

/// Adds PATH, --best, --newest and --set. `name`: of the command.
void add_model_options(Command& command, ModelOptions& options, const std::string& name);

/// Files that the configuration does not name, and how their text is read.
struct InputOptions {
  std::vector<std::string> inputs;  // paths, patterns, "-"
  std::optional<bool> header;
  std::string delimiter;

  /// Throws UserError for a delimiter that is more than a character.
  TextOptions text() const;
};

/// Adds --header, --no-header and --delimiter.
void add_text_options(Command& command, InputOptions& options);

/// Loads the checkpoint file, or of a run directory the best checkpoint where the configuration names one
/// (checkpoint.best), else the newest. Throws UserError as load_saved_run() does.
SavedRun load_saved_model(const ModelOptions& options);

/// The checkpoint's path and place in its run, as a line: "checkpoint: PATH, the best by val_loss (0.1234)".
std::string checkpoint_as_text(const SavedRun& run);
/// "in the units of 'price'": of the targets that the data set's transforms changed; "in the units of the
/// data" for targets without a name.
std::string in_units_of_targets(const RunConfig& config);
/// {path, step, epoch, chosen}; chosen is "best", "newest", or "given" for a path of a file.
Json checkpoint_as_json(const SavedRun& run);

}  // namespace dtrain
