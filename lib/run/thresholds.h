// Decision thresholds of a run's outputs with two classes (train.threshold).
#pragma once

#include <string>

#include "config/diagnostics.h"
#include "run/run_config.h"

namespace dtrain {

/// If train.threshold is a goal, adds the metric "threshold", which chooses the threshold, to every output
/// with two classes. The record of each epoch and every checkpoint then contain the threshold for the
/// validation split. Reports an error if there is a goal but no validation split, or if train.threshold is
/// set but no output has two classes. Skips parts of the run that could not be parsed.
void add_thresholds(RunConfig& config, bool has_validation, Diagnostics& diagnostics);

/// Returns the name under which the metric "threshold" of an output is reported.
std::string name_of_threshold(const RunConfig& config, size_t head);

/// Returns whether an output can have a threshold, which requires two classes.
bool can_have_threshold(const RunConfig& config, size_t head);

}  // namespace dtrain
