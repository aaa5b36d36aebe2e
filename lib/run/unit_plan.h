// The data set's transforms as changes of the units of inputs and targets.
#pragma once

#include "data/columns/column_plan.h"
#include "run/run_config.h"

namespace dtrain {

/// The plan that makes an input of its column as it is stored, gaps aside, by the facts of the run's training
/// split; augmentations are left out. Throws UserError where those lack the numbers of a fitted transform.
ColumnPlan unit_plan_of_input(const RunConfig& config, const TensorSpec& input);
/// The same of a target. One that is an input (`target: {input: image}`) has the transforms of that input,
/// too.
ColumnPlan unit_plan_of_target(const RunConfig& config, const TensorSpec& target);

}  // namespace dtrain
