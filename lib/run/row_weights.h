// Row weights in losses: by class, and by a column of the data.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "config/diagnostics.h"
#include "run/run_config.h"

namespace dtrain {

/// Returns the names of an output's classes in the data; empty if they have no names.
std::vector<std::string> class_names(const RunConfig& config, const DataFacts& facts, size_t head);
/// Returns a warning for each output whose target has only one named class, and for each output with a
/// classification loss and more units than named classes.
std::vector<std::string> class_warnings(const RunConfig& config, const DataFacts& facts);
/// Returns the names of the training file's columns that are an output's target; empty if there are none, as
/// for a target that is one of the inputs.
std::vector<std::string> target_columns(const RunConfig& config, size_t head);

/// Parses `class_weight:`, and sets Head::weights if rows have weights, by class or from the data set. Skips
/// parts of the run that failed to parse.
void set_row_weights(RunConfig& config, Diagnostics& diagnostics);
Json class_weight_json_schema();

/// Returns a split with the columns that the run's plans read: if rows have weights, a weight column follows
/// the targets. `counted`: for training, the training split without augmentation, whose classes determine
/// balanced weights; otherwise null, and class weights are not used. Sample weights are the column after the
/// targets in `data`, or 1 if there is none. Throws UserError, also when reading, if a weight is negative or
/// not a number.
std::shared_ptr<const Dataset> with_weights(std::shared_ptr<const Dataset> data, const RunConfig& config,
                                            const Dataset* counted);

}  // namespace dtrain
