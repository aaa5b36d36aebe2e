// The thresholds of a run's outputs that tell two classes apart (train.threshold).
#pragma once

#include <optional>
#include <string>

#include "config/diagnostics.h"
#include "train/run_config.h"
#include "train/saved_run.h"

namespace dtrain {

/// Adds the metric that chooses the threshold to every output of two classes, under the name "threshold",
/// where the configuration states a goal. The record of each epoch then has the threshold of the validation
/// split, and so has every checkpoint. Reports a goal without a validation split, and a threshold without
/// such an output. Parts of the run that could not be made are passed over.
void add_thresholds(RunConfig& config, bool has_validation, Diagnostics& diagnostics);

/// The name under which that metric is reported.
std::string name_of_threshold(const RunConfig& config, size_t head);

/// The threshold of an output: that of the configuration, or the one of the last epoch that the checkpoint
/// knows. Nothing where there is none. Throws UserError where the checkpoint's was chosen for another goal.
std::optional<double> saved_threshold(const SavedRun& run, size_t head);

}  // namespace dtrain
