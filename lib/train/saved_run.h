// Loads runs from their checkpoints: to resume, evaluate or predict.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "run/record/run_directory.h"
#include "run/record/training_state.h"
#include "run/run_config.h"

namespace dtrain {

/// Selects one of a run's checkpoints.
enum class Which {
  newest,
  best,       // the best checkpoint; an error if the run has none
  preferred,  // the best checkpoint, if the configuration defines one (checkpoint.best) and the run has it;
              // else the newest
};

struct SavedRun {
  Checkpoint checkpoint;
  RunConfig config;
  std::optional<RunDirectory> directory;  // nullopt for a single file outside a run directory
  /// The kind of checkpoint that was loaded from the run's directory; nullopt if the path named a file.
  std::optional<Which> which = {};
};

/// File names in a folder that `dtrain import` writes: the model part of a configuration, and a checkpoint.
inline constexpr const char* kImportedModel = "model.yaml";
inline constexpr const char* kImportedWeights = "weights.h5";
/// Returns the path of the checkpoint in a folder that `dtrain import` wrote; nullopt for other paths.
std::optional<std::string> imported_model_at(const std::string& path);

/// Returns the run directory that contains `path` (see load_saved_run()); nullopt for a file outside run
/// directories. Throws UserError if `path` does not exist.
std::optional<RunDirectory> run_directory_of(const std::string& path);
/// Loads a run. `path`: a run directory, its checkpoints/, a folder that `dtrain import` wrote, or one file.
/// From a directory, loads the newest or the best checkpoint, depending on `which`. The newest checkpoint is
/// the newest that is intact; `warn` is called for damaged checkpoints. The best checkpoint is the one that
/// the newest checkpoint names as the best so far. For Which::preferred, if the best checkpoint cannot be
/// read, calls `warn` and loads the newest checkpoint. `sets`: changes to the checkpoint's configuration.
/// Throws UserError.
SavedRun load_saved_run(const std::string& path, const std::vector<std::string>& sets,
                        const std::function<void(const std::string&)>& warn, Which which = Which::newest);

/// Returns the configuration of the run that wrote a checkpoint, changed by `sets`. Throws UserError.
RunConfig saved_config(const Checkpoint& checkpoint, const std::vector<std::string>& sets);

/// Returns the run's state, including its history, at the time when it wrote a checkpoint.
TrainingState saved_state(const Checkpoint& checkpoint);

/// Returns the facts about the run's training split, for configurations that continue from the checkpoint.
DataFacts saved_facts(const Checkpoint& checkpoint);

/// Returns the newest intact checkpoint of a run directory, like load_saved_run(); nullopt if the directory
/// has no checkpoints.
std::optional<Checkpoint> load_newest(const RunDirectory& directory,
                                      const std::function<void(const std::string&)>& warn);

/// Calls open(file) with the path of the best checkpoint of a run directory, or of its newest checkpoint if
/// it has no best checkpoint. Passes other paths to `open` unchanged. If the run is in progress, it may
/// remove this checkpoint before `open` has opened it. If `open` throws UserError for this reason, the best
/// checkpoint is looked up again, and `open` is called again. Throws UserError if the directory has no
/// checkpoints.
void open_best_checkpoint(const std::string& path, const std::function<void(const std::string&)>& warn,
                          const std::function<void(const std::string& file)>& open);
/// Returns the checkpoint that open_best_checkpoint() opens.
Checkpoint load_best_checkpoint(const std::string& path, const std::function<void(const std::string&)>& warn);

}  // namespace dtrain
