// A run as its checkpoints have it: to be resumed, evaluated, asked for predictions.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "train/replicas.h"
#include "train/run_config.h"
#include "train/run_directory.h"
#include "train/training_state.h"

namespace dtrain {

/// One of a run's checkpoints.
enum class Which {
  newest,
  best,       // an error where the run has none
  preferred,  // the best where the configuration names one (checkpoint.best) and the run has it, else the
              // newest
};

struct SavedRun {
  Checkpoint checkpoint;
  RunConfig config;
  std::optional<RunDirectory> directory;  // nothing for a file that stands alone
  /// Whether the checkpoint is its directory's newest or best one; nothing where the path named the file.
  std::optional<Which> which = {};
};

/// The names of the files in a folder that `dtrain import` writes: the model part of a configuration, and a
/// checkpoint.
inline constexpr const char* kImportedModel = "model.yaml";
inline constexpr const char* kImportedWeights = "weights.h5";
/// Returns the path of the checkpoint in a folder that `dtrain import` wrote; nothing for other paths.
std::optional<std::string> imported_model_at(const std::string& path);

/// The run directory that a path, as load_saved_run() takes it, leads to; nothing for a file that stands
/// alone. Throws UserError where nothing is there.
std::optional<RunDirectory> run_directory_of(const std::string& path);
/// `path`: a run directory, its checkpoints/, a folder that `dtrain import` wrote, or one file. Of a
/// directory the newest checkpoint that is whole (damaged ones are passed over, with a word to `warn`), or
/// the one that it names as the best so far. Where the preferred best checkpoint cannot be read, `warn` is
/// told, and the newest one is loaded. `sets` change the checkpoint's configuration. Throws UserError.
SavedRun load_saved_run(const std::string& path, const std::vector<std::string>& sets,
                        const std::function<void(const std::string&)>& warn, Which which = Which::newest);

/// The configuration of the run that wrote a checkpoint, with `sets`. Throws UserError.
RunConfig saved_config(const Checkpoint& checkpoint, const std::vector<std::string>& sets);

/// The state of the run when it wrote a checkpoint, with its history.
TrainingState saved_state(const Checkpoint& checkpoint);

/// What the run's training split told, for a configuration that goes on with what it saved.
DataFacts saved_facts(const Checkpoint& checkpoint);

/// The newest whole checkpoint of a run directory, as above; nothing where it holds none at all.
std::optional<Checkpoint> load_newest(const RunDirectory& directory,
                                      const std::function<void(const std::string&)>& warn);

/// The path of a run directory's best checkpoint, or its newest where there is no such; any other path as it
/// is. Throws UserError where the directory holds none.
std::string best_checkpoint_at(const std::string& path, const std::function<void(const std::string&)>& warn);

/// Allocates the parameters and slots and puts a checkpoint's in place, to train on. Slots that the
/// checkpoint does not have stay as they begin: all where it is of another optimizer, those of weights that
/// were not trained when it was saved. `state` is the checkpoint's, and learns which these are (slots_since).
/// The words that the user should hear of it; "" where nothing begins anew. Throws UserError where a weight
/// is missing or of another shape, or the memory is not there.
std::string restore_for_training(const Checkpoint& checkpoint, const RunConfig& config, Replicas& replicas,
                                 TrainingState& state);

/// Puts a checkpoint's weights in place, after Replicas::allocate() and before finish_writing(). Throws
/// UserError where a weight is missing or of another shape.
void restore_weights(const Checkpoint& checkpoint, Replicas& replicas);

/// A saved run's model with its weights on this machine's devices, for `purpose` (evaluation or prediction)
/// with the loader's batches, of `batch_size` at most. Throws UserError as above. Refers to the run.
std::unique_ptr<Replicas> replicas_for_inference(const SavedRun& run, Plan::Purpose purpose,
                                                 int64_t batch_size, const Loader& loader);

/// What a checkpoint holds; refers to `arrays`, which lie as `layout` says. `state` is a TrainingState's.
CheckpointContent checkpoint_content(const RunConfig& config, const ParameterLayout& layout,
                                     const HostArrays& arrays, const TrainingState& state,
                                     int64_t steps_per_epoch);

/// Where the array of a parameter is, of its values or of a slot.
using ArrayOf = std::function<const float*(const ParameterSlice&)>;
/// The same of arrays that lie anywhere, and of the optimizer's slots in its order.
CheckpointContent checkpoint_content(const RunConfig& config, const ParameterLayout& layout,
                                     const ArrayOf& values, const std::vector<ArrayOf>& slots,
                                     const TrainingState& state, int64_t steps_per_epoch);

}  // namespace dtrain
