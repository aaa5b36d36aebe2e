// Loads runs from their checkpoints: to resume, evaluate or predict.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "engine/engine.h"
#include "run/record/run_directory.h"
#include "run/record/training_state.h"
#include "run/run_plan.h"

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
  /// The kind of checkpoint that was loaded from the run's directory; nullopt if the path was that of a file.
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
/// From a directory, loads the newest intact checkpoint (skips damaged ones and calls `warn`), or the
/// checkpoint that the newest one names as the best so far. If the preferred best checkpoint cannot be read,
/// calls `warn` and loads the newest one. `sets`: changes of the checkpoint's configuration. Throws
/// UserError.
SavedRun load_saved_run(const std::string& path, const std::vector<std::string>& sets,
                        const std::function<void(const std::string&)>& warn, Which which = Which::newest);

/// Returns the configuration of the run that wrote a checkpoint, changed by `sets`. Throws UserError.
RunConfig saved_config(const Checkpoint& checkpoint, const std::vector<std::string>& sets);

/// Returns the run's state, including its history, at the time when it wrote a checkpoint.
TrainingState saved_state(const Checkpoint& checkpoint);

/// Returns the facts about the run's training split, for configurations that continue from the checkpoint.
DataFacts saved_facts(const Checkpoint& checkpoint);

/// Returns the newest intact checkpoint of a run directory, like load_saved_run(); nullopt if it has no
/// checkpoints.
std::optional<Checkpoint> load_newest(const RunDirectory& directory,
                                      const std::function<void(const std::string&)>& warn);

/// Returns the path of a run directory's best checkpoint, or of its newest one if there is no best; returns
/// other paths unchanged. Throws UserError if the directory has no checkpoints.
std::string best_checkpoint_at(const std::string& path, const std::function<void(const std::string&)>& warn);

/// Allocates parameters and optimizer state for training and loads them from a checkpoint. Optimizer state
/// that the checkpoint lacks keeps its initial value: all of it if the checkpoint has another optimizer,
/// otherwise that of weights that were not trained before. `state`: the checkpoint's; records these weights
/// in slots_since. Returns a message for the user, or "" if nothing was reset. Throws UserError if a weight
/// is missing or has another shape, or if there is too little memory.
std::string restore_for_training(const Checkpoint& checkpoint, const RunConfig& config, Engine& engine,
                                 TrainingState& state);

/// Loads a checkpoint's weights. To be called after Engine::allocate() and before finish_writing(). Throws
/// UserError if a weight is missing or has another shape.
void restore_weights(const Checkpoint& checkpoint, Engine& engine);

/// Puts a model with the weights of a checkpoint on the devices of the plan, for `purpose` (evaluation or
/// prediction) with batches of at most `batch_size` samples. `data`: memory of the samples. Throws UserError
/// like restore_weights(), or if there is too little memory. Keeps references to the plan.
std::unique_ptr<Engine> engine_for_inference(const RunPlan& plan, const Checkpoint& checkpoint,
                                             Plan::Purpose purpose, int64_t batch_size,
                                             const DataMemory& data);
/// The same for batches of the loader.
std::unique_ptr<Engine> engine_for_inference(const RunPlan& plan, const Checkpoint& checkpoint,
                                             Plan::Purpose purpose, int64_t batch_size, const Loader& loader);

/// Returns the content of a checkpoint; refers to `arrays`, which have the layout `layout`.
CheckpointContent checkpoint_content(const RunConfig& config, const ParameterLayout& layout,
                                     const HostArrays& arrays, const TrainingState& state,
                                     int64_t steps_per_epoch);

/// A function that returns an array of a parameter: its values or a slot.
using ArrayOf = std::function<const float*(const ParameterSlice&)>;
/// Like checkpoint_content() above, for arrays at any addresses. `slots` is in the optimizer's order.
CheckpointContent checkpoint_content(const RunConfig& config, const ParameterLayout& layout,
                                     const ArrayOf& values, const std::vector<ArrayOf>& slots,
                                     const TrainingState& state, int64_t steps_per_epoch);

}  // namespace dtrain
