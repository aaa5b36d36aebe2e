// Puts the weights and the optimizer state of a checkpoint on the devices of a run.
#pragma once

#include <memory>
#include <string>

#include "checkpoint/checkpoint.h"
#include "engine/engine.h"
#include "run/record/training_state.h"
#include "run/run_plan.h"

namespace dtrain {

/// Allocates parameters and optimizer state for training, and loads them from a checkpoint. If the checkpoint
/// is from a different optimizer, all optimizer state has its initial values. Otherwise, only the state of
/// weights that were not trained before has its initial values. In both cases, the weights whose state was
/// not loaded are recorded in `state.slots_since`. `state`: the training state of the checkpoint. Returns a
/// message for the user, or "" if all state was loaded. Throws UserError if a weight is missing or has a
/// different shape, or if there is too little memory.
std::string restore_for_training(const Checkpoint& checkpoint, const RunConfig& config, Engine& engine,
                                 TrainingState& state);

/// Loads a checkpoint's weights. To be called after Engine::allocate() and before finish_writing(). Throws
/// UserError if a weight is missing or has a different shape.
void restore_weights(const Checkpoint& checkpoint, Engine& engine);

/// Creates an engine on the devices of the plan, with the weights of a checkpoint, for `purpose` (evaluation
/// or prediction) and batches of at most `batch_size` samples. `data`: the memory that the samples need.
/// Throws UserError like restore_weights(), or if there is too little memory. Keeps a reference to the plan.
std::unique_ptr<Engine> engine_for_inference(const RunPlan& plan, const Checkpoint& checkpoint,
                                             Plan::Purpose purpose, int64_t batch_size,
                                             const DataMemory& data);
/// Like the function above, but for samples of `loader`, which determines the memory that the samples need.
std::unique_ptr<Engine> engine_for_inference(const RunPlan& plan, const Checkpoint& checkpoint,
                                             Plan::Purpose purpose, int64_t batch_size, const Loader& loader);

}  // namespace dtrain
