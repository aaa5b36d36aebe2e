// Makes the training configuration for Keras that a checkpoint contains.
#pragma once

#include "run/run_config.h"

namespace dtrain {

/// Returns Keras's training_config, with which Keras compiles the loaded model: loss, metrics and an
/// optimizer without state. Returns null if no configuration of this optimizer is valid in both Keras 2 and
/// Keras 3, or if Keras would minimize a different loss, which is the case if rows have weights. `schedule`:
/// the state of the learning rate schedule.
Json keras_training_config(const RunConfig& config, int64_t steps_per_epoch, const Json& schedule);

/// Returns {loss, metrics, weighted_metrics, loss_weights} as Keras serializes them. Returns null if Keras
/// does not have a loss of the run or averages it differently, which is the case if rows have weights.
Json keras_outputs(const RunConfig& config);

}  // namespace dtrain
