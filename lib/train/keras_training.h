// Training configuration for Keras in a checkpoint.
#pragma once

#include "run/run_config.h"

namespace dtrain {

/// Returns Keras's training_config, with which Keras compiles the loaded model: loss, metrics and an
/// optimizer without state. Returns null if Keras 2 and 3 have no common form for this optimizer, or if Keras
/// would minimize a different loss, as for rows with weights. `schedule`: the state of the learning rate
/// schedule.
Json keras_training_config(const RunConfig& config, int64_t steps_per_epoch, const Json& schedule);

/// Returns {loss, metrics, weighted_metrics, loss_weights} as Keras serializes them; null if Keras has no
/// such loss or averages it differently, as for rows with weights.
Json keras_outputs(const RunConfig& config);

}  // namespace dtrain
