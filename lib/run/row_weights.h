// Row weights in losses. They come from class weights and from a column of the data.
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
/// Returns the names of the columns of the training file that are the target of an output. Returns an empty
/// list if the target has no columns with names, for example because the target is one of the inputs.
std::vector<std::string> target_columns(const RunConfig& config, size_t head);

/// Parses `class_weight:`, and sets Head::weights if rows have weights (class weights or sample weights).
/// Skips parts of the run that could not be parsed.
void set_row_weights(RunConfig& config, Diagnostics& diagnostics);
Json class_weight_json_schema();

/// Returns the split with a column of row weights after the targets, if rows have weights; otherwise returns
/// `data`. The weight of a row is the product of its sample weight and its class weight. Sample weights are
/// the column after the targets in `data`; if `data` has no such column, they are 1. `counted`: for training,
/// the training split without augmentations, from which balanced class weights are computed; null for
/// evaluation, in which class weights are not used. Throws UserError if a weight is negative or not a number;
/// reading samples may also throw it.
std::shared_ptr<const Dataset> with_weights(std::shared_ptr<const Dataset> data, const RunConfig& config,
                                            const Dataset* counted);

}  // namespace dtrain
