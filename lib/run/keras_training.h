// What a checkpoint tells Keras about how the model is trained.
#pragma once

#include "run/run_config.h"

namespace dtrain {

/// Keras's training_config, from which it compiles the model that it loads: loss, metrics and optimizer, the
/// latter to begin anew. Null where Keras 2 and 3 have no form in common for this optimizer, or would
/// minimise something else: of rows with weights, too. `schedule` is the state of the learning rate's
/// schedule.
Json keras_training_config(const RunConfig& config, int64_t steps_per_epoch, const Json& schedule);

/// {loss, metrics, weighted_metrics, loss_weights} as Keras serializes them; null if Keras has no such loss,
/// or takes another mean of it, as of rows with weights.
Json keras_outputs(const RunConfig& config);

}  // namespace dtrain
