// Converts the units of the data to the units of the model's inputs and targets, as the data set's transforms
// do.
#pragma once

#include "data/columns/column_plan.h"
#include "run/run_config.h"

namespace dtrain {

/// Returns the plan that converts the stored column of an input to the model's input, with the facts of the
/// run's training split. The plan does not fill missing values and does not augment. Throws UserError if the
/// facts lack the parameters (such as the mean) of a fitted transform.
ColumnPlan unit_plan_of_input(const RunConfig& config, const TensorSpec& input);
/// Returns the plan that converts the stored column of a target to the target of the model, like
/// unit_plan_of_input(). If the split has windows, the plan converts the target of a single row. For a target
/// that is one of the inputs (`target: {input: image}`), the plan includes the transforms of the input.
ColumnPlan unit_plan_of_target(const RunConfig& config, const TensorSpec& target);

}  // namespace dtrain
