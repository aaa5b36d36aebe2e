// Puts the weights and the optimizer state of a checkpoint on the devices of a run.
#pragma once

#include <memory>
#include <string>

#include "checkpoint/checkpoint.h"
#include "engine/engine.h"
#include "run/record/training_state.h"
#include "run/run_plan.h"

namespace dtrain {

/// Allocates parameters and optimizer state for training and loads them from a checkpoint. Optimizer state
/// that the checkpoint lacks keeps its initial value: all of it if the checkpoint has another optimizer,
/// otherwise the state of weights that were not trained before. `state`: the checkpoint's state, in which
/// these weights are recorded as slots_since. Returns a message for the user, or "" if nothing was reset.
/// Throws UserError if a weight is missing or has another shape, or if there is too little memory.
std::string restore_for_training(const Checkpoint& checkpoint, const RunConfig& config, Engine& engine,
                                 TrainingState& state);

/// Loads a checkpoint's weights. To be called after Engine::allocate() and before finish_writing(). Throws
/// UserError if a weight is missing or has another shape.
void restore_weights(const Checkpoint& checkpoint, Engine& engine);

/// Puts a model with the weights of a checkpoint on the devices of the plan, for `purpose` (evaluation or
/// prediction) with batches of at most `batch_size` samples. `data`: memory of the samples. Throws UserError
/// like restore_weights(), or if there is too little memory. Keeps a reference to the plan.
std::unique_ptr<Engine> engine_for_inference(const RunPlan& plan, const Checkpoint& checkpoint,
                                             Plan::Purpose purpose, int64_t batch_size,
                                             const DataMemory& data);
/// Like the function above, but takes the memory of the samples from a loader.
std::unique_ptr<Engine> engine_for_inference(const RunPlan& plan, const Checkpoint& checkpoint,
                                             Plan::Purpose purpose, int64_t batch_size, const Loader& loader);

}  // namespace dtrain
