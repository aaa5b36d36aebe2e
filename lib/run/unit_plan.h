// The data set's transforms as conversions of units.
#pragma once

#include "data/columns/column_plan.h"
#include "run/run_config.h"

namespace dtrain {

/// Returns the plan that converts an input's stored column to the model's input, without filling gaps and
/// without augmentations, using the facts of the run's training split. Throws UserError if the facts lack the
/// numbers of a fitted transform.
ColumnPlan unit_plan_of_input(const RunConfig& config, const TensorSpec& input);
/// Returns the same plan for a target. With windows, it is the plan for the target of one row. A target that
/// is one of the inputs (`target: {input: image}`) also has that input's transforms.
ColumnPlan unit_plan_of_target(const RunConfig& config, const TensorSpec& target);

}  // namespace dtrain
