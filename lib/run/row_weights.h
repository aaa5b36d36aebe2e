// What rows count for in losses: by their class, and by a column of the data.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "config/diagnostics.h"
#include "run/run_config.h"

namespace dtrain {

/// What the data call the classes of an output; empty where they have no names.
std::vector<std::string> class_names(const RunConfig& config, const DataFacts& facts, size_t head);
/// A sentence for each output whose target has only one named class, and for each whose loss tells classes
/// that has more units than its target has named classes.
std::vector<std::string> class_warnings(const RunConfig& config, const DataFacts& facts);
/// The name of the training file's column that an output's target is; "" where it has none, as a target that
/// is an input.
std::string target_column(const RunConfig& config, size_t head);

/// Reads `class_weight:`, and sets Head::weights where rows have weights, of their class or of the data set.
/// Parts of the run that could not be made are passed over.
void set_row_weights(RunConfig& config, Diagnostics& diagnostics);
Json class_weight_json_schema();

/// A split as the run's plans take it: where rows have weights, with a column of them behind the targets.
/// Weights of classes are for training alone: `counted`, null else, is the training split as it is without
/// augmentation, whose classes balanced weights are counted from. Weights of samples are the column that
/// `data` has behind its targets, or 1 where it has none. Throws UserError, and so does reading, where a
/// weight is no number from 0 up.
std::shared_ptr<const Dataset> with_weights(std::shared_ptr<const Dataset> data, const RunConfig& config,
                                            const Dataset* counted);

}  // namespace dtrain
