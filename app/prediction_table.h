// Predictions as a table for people: what each sample is called, classes by name, probabilities.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/array_writer.h"
#include "data/dataset.h"
#include "train/run_config.h"

namespace dtrain {

/// Whether the run knows names for what it predicts: of classes, of columns, or of the samples.
bool has_named_predictions(const RunConfig& config, const Dataset& inputs);

/// Writes a .csv with a header: the sample's id (or its row), then for each output the class and the
/// probability of each class, or the numbers under the target's name. Scores that a loss takes for logits
/// become probabilities. Refers to its arguments.
std::unique_ptr<ArrayWriter> open_prediction_table(const std::string& path, const RunConfig& config,
                                                   const std::vector<TensorSpec>& outputs,
                                                   const Dataset& inputs);

}  // namespace dtrain
