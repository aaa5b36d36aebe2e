// Loads the trained model for evaluate, predict, generate and export.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "cli/command_line.h"
#include "collective/world.h"
#include "data/dataset_spec.h"
#include "train/saved_run.h"

namespace dtrain {

/// Options that select a saved model and change its configuration.
struct ModelOptions {
  std::string command;  // the command that uses the model
  std::string path;
  std::vector<std::string> sets;
  bool best = false, newest = false;
};

/// Adds PATH, --best, --newest and --set. `name` is the command's name.
void add_model_options(Command& command, ModelOptions& options, const std::string& name);

/// Input files given on the command line, and their text format.
struct InputOptions {
  std::vector<std::string> inputs;  // paths, patterns, "-"
  std::optional<bool> header;
  std::string delimiter;

  TextOptions text() const;
};

/// Adds --header, --no-header and --delimiter.
void add_text_options(Command& command, InputOptions& options);

/// Loads the checkpoint file. For a run directory, loads the best checkpoint if the configuration has
/// checkpoint.best, else the newest. Throws UserError as load_saved_run() does.
SavedRun load_saved_model(const ModelOptions& options);

/// Loads the model in process 0 like load_saved_model(), and sends its checkpoint to the other processes,
/// which need no file. All processes must call it.
SavedRun share_saved_model(const ModelOptions& options, World& world);

/// Returns a line with the checkpoint's path, its step and why it was chosen: "checkpoint: PATH, step 500,
/// the best by val_loss (0.1234)".
std::string checkpoint_as_text(const SavedRun& run);
/// Returns a text such as "in the units of 'price'", which names the targets that the dataset's transforms
/// change. Returns "in the units of the data" if these targets have no names.
std::string in_units_of_targets(const RunConfig& config);
/// Returns {path, step, epoch, chosen}; `chosen` is "best", "newest", or "given" if the user named the file.
Json checkpoint_as_json(const SavedRun& run);

}  // namespace dtrain
