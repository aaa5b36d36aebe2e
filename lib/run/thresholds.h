// Decision thresholds of a run's outputs with two classes (train.threshold).
#pragma once

#include <string>

#include "config/diagnostics.h"
#include "run/run_config.h"

namespace dtrain {

/// If the configuration states a goal, adds the metric "threshold", which chooses the threshold, to every
/// output with two classes. The record of each epoch, and every checkpoint, then contains the threshold for
/// the validation split. Reports a goal without a validation split, and a threshold without such an output.
/// Skips parts of the run that failed to parse.
void add_thresholds(RunConfig& config, bool has_validation, Diagnostics& diagnostics);

/// Returns the name under which the metric "threshold" of an output is reported.
std::string name_of_threshold(const RunConfig& config, size_t head);

/// Returns whether an output has a threshold if the configuration defines one.
bool can_have_threshold(const RunConfig& config, size_t head);

}  // namespace dtrain
