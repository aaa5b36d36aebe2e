// The thresholds of a run's outputs that tell two classes apart (train.threshold).
#pragma once

#include <string>

#include "config/diagnostics.h"
#include "run/run_config.h"

namespace dtrain {

/// Adds the metric that chooses the threshold to every output of two classes, under the name "threshold",
/// where the configuration states a goal. The record of each epoch then has the threshold of the validation
/// split, and so has every checkpoint. Reports a goal without a validation split, and a threshold without
/// such an output. Parts of the run that could not be made are passed over.
void add_thresholds(RunConfig& config, bool has_validation, Diagnostics& diagnostics);

/// The name under which that metric is reported.
std::string name_of_threshold(const RunConfig& config, size_t head);

/// Whether an output has a threshold where the configuration has one.
bool can_have_threshold(const RunConfig& config, size_t head);

}  // namespace dtrain
