#include "run/unit_plan.h"

#include <algorithm>

#include "data/columns/row_fitter.h"

namespace dtrain {

namespace {

PlannedColumn begin_plan(const ColumnTransforms& transforms) {
  const ColumnPlan plan({"", transforms.stored.shape, DType::float32});
  return {plan, plan};
}

PlannedColumn extend_plan(const RunConfig& config, PlannedColumn begun, const TensorSpec& wanted,
                          bool is_target, const ColumnTransforms& transforms) {
  DataFacts facts = config.dataset.facts;
  for (auto& [name, steps] : facts.fitted)  // filling missing values does not change the unit
    if (!steps.empty() && steps.front().kind == "fill") steps.erase(steps.begin());
  RowFitter fitter(facts, name_for_of(wanted), {});
  return plan_column(std::move(begun), wanted, is_target, transforms.chosen, {}, fitter, {});
}

PlannedColumn plan_input(const RunConfig& config, const TensorSpec& input) {
  const ColumnTransforms transforms = transforms_of(input, false, config.dataset.transforms);
  return extend_plan(config, begin_plan(transforms), input, false, transforms);
}

}  // namespace

ColumnPlan unit_plan_of_input(const RunConfig& config, const TensorSpec& input) {
  return plan_input(config, input).plan;
}

ColumnPlan unit_plan_of_target(const RunConfig& config, const TensorSpec& target) {
  const auto& train = config.dataset.train;
  const InputTarget* same = train ? train->find_input_target(target.name) : nullptr;
  if (train && train->windows) {  // with windows, the transforms are applied to single rows
    const TensorSpec row = rows_of_windows(train->windows, {target}, true).front();
    const ColumnTransforms of_row = transforms_of(row, true, config.dataset.transforms);
    return extend_plan(config, begin_plan(of_row), row, true, of_row).plan;
  }
  ColumnTransforms of_target = transforms_of(target, true, config.dataset.transforms);
  if (!same) return extend_plan(config, begin_plan(of_target), target, true, of_target).plan;
  std::erase_if(of_target.chosen, [](const TransformSpec* spec) { return spec->of.empty(); });
  const std::vector<TensorSpec> inputs = config.graph.input_specs();
  const auto input = std::find_if(inputs.begin(), inputs.end(),
                                  [&](const TensorSpec& one) { return one.name == same->input; });
  return extend_plan(config, plan_input(config, *input), target, true, of_target).plan;
}

}  // namespace dtrain
