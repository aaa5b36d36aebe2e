// Checks that a run's data match its model. The checks use only the configuration and read no data.
#pragma once

#include "config/diagnostics.h"
#include "run/run_config.h"

namespace dtrain {

/// Reports transforms, targets, windows, masks and vocabularies that do not match the model. The dataset and
/// the graph of `config` must have no errors.
void check_dataset_fits(const RunConfig& config, Diagnostics& diagnostics);

/// If the run truncates batches (bucket_by_length), reports a model that cannot compute truncated batches.
void check_lengths(const RunConfig& config, Diagnostics& diagnostics);

}  // namespace dtrain
