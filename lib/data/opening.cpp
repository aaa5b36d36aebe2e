#include "data/opening.h"

#include <algorithm>

#include <fmt/format.h>

#include "data/columns/column_transforms.h"
#include "data/readers/reader.h"

namespace dtrain {

std::vector<TensorSpec> before_transforms(std::vector<TensorSpec> wanted, bool targets,
                                          const std::vector<TransformSpec>& transforms) {
  for (TensorSpec& spec : wanted) spec = transforms_of(spec, targets, transforms).stored;
  return wanted;
}

FitRows ColumnPlanner::fit_rows(const Column& column) const {
  if (purpose_ == Purpose::prediction) return {};
  return {&column, held_rows_, source_.from - held_.first, source_.to - held_.first,
          purpose_ == Purpose::training};
}

bool ColumnPlanner::add(const TensorSpec& wanted, bool target, std::optional<TargetPicture> pixels) {
  if (held_rows_.empty() && !source_.rows_to_fit().empty()) {
    held_rows_ = source_.rows_to_fit();
    for (int64_t& row : held_rows_) row -= held_.first;
  }
  const auto column = held_.columns[next_++];
  RowFitter fitter(source_.facts, name_for_of(wanted), fit_rows(*column));
  ColumnPlan plan(column->spec());
  const auto& fills = source_.facts.source.fills;
  if (const auto found = fills.find(wanted.name); !target && found != fills.end())
    at_place(place_, [&] { add_fill(plan, found->second, fitter); });
  const auto chosen = transforms_of(wanted, target, spec_.transforms).chosen;
  AugmentPlan augment{spec_.augment, purpose_ == Purpose::training};
  if (pixels) augment.target = {*pixels, columns.front()->spec().shape};
  PlannedColumn planned = plan_column({plan, plan}, wanted, target, chosen, augment, fitter, place_);
  plans.push_back(std::move(planned.plan));
  evaluation_plans_.push_back(std::move(planned.evaluation));
  columns.push_back(column);
  return planned.is_augmented;
}

void ColumnPlanner::add_inputs(const std::vector<TensorSpec>& inputs) {
  bool is_augmented = false;
  std::string found;
  for (const TensorSpec& input : inputs) {
    if (add(input, false)) is_augmented = true;
    found += fmt::format("{}{} for the input '{}'", found.empty() ? "" : ", ",
                         plans.back().spec().shape.str(), input.name);
  }
  const auto wants = std::find_if(spec_.augment.begin(), spec_.augment.end(),
                                  [](const auto& augmentation) { return augmentation->needs_pictures(); });
  if (!is_augmented && wants != spec_.augment.end())
    throw UserError(located(
        wants->resolved.mark(),
        fmt::format("augment: expected images of shape [height, width, channels], but found the shape {}",
                    found)));
}

void ColumnPlanner::add_targets(const std::vector<TensorSpec>& targets, const SplitSpec& split,
                                const std::vector<TensorSpec>& inputs) {
  const std::optional<TargetPicture> pixels = split.reader->target_picture();
  for (const TensorSpec& target : targets) {
    if (const InputTarget* same = split.find_input_target(target.name)) {
      add_input_target(target, same->input, inputs);
      continue;
    }
    if (pixels) input_targets[columns.size()] = 0;
    add(target, true, pixels);
  }
}

void ColumnPlanner::add_input_target(const TensorSpec& target, const std::string& input,
                                     const std::vector<TensorSpec>& inputs) {
  const auto found =
      std::find_if(inputs.begin(), inputs.end(), [&](const TensorSpec& one) { return one.name == input; });
  if (found == inputs.end())
    throw UserError(located(place_, fmt::format("target: the model has no input named '{}'{}", input,
                                                suggestion_or_list(input, spec_names(inputs)))));
  const auto index = static_cast<size_t>(found - inputs.begin());
  auto chosen = transforms_of(target, true, spec_.transforms).chosen;
  std::erase_if(chosen, [](const TransformSpec* spec) { return spec->of.empty(); });
  RowFitter fitter(source_.facts, name_for_of(target), fit_rows(*columns[index]));
  plans.push_back(
      plan_column({plans[index], evaluation_plans_[index]}, target, true, chosen, {}, fitter, place_).plan);
  input_targets[columns.size()] = index;
  columns.push_back(columns[index]);
}

void ColumnPlanner::add_weights() {
  columns.push_back(held_.weights);
  plans.emplace_back(columns.back()->spec());
}

void check_windows(const DatasetSpec& spec, const std::vector<TensorSpec>& inputs,
                   const std::vector<TensorSpec>& targets, Diagnostics& diagnostics) {
  for (const char* name : kSplitNames) {
    const SplitSpec* split = spec.find(name);
    if (!split || split->drawn || !split->windows) continue;
    for (const auto* columns : {&inputs, &targets})
      for (const TensorSpec& column : *columns)
        if (const std::string why = why_no_windows_fit(*split->windows, column, columns == &targets);
            !why.empty())
          diagnostics.error(split->windows->mark, why);
  }
}

void check_input_targets(const DatasetSpec& spec, const std::vector<TensorSpec>& inputs,
                         const std::vector<TensorSpec>& targets, Diagnostics& diagnostics) {
  const auto has = [](const std::vector<TensorSpec>& all, const std::string& name) {
    return std::any_of(all.begin(), all.end(), [&](const TensorSpec& one) { return one.name == name; });
  };
  for (const char* name : kSplitNames) {
    const SplitSpec* split = spec.find(name);
    if (!split || split->drawn) continue;
    for (const InputTarget& one : split->input_targets) {
      if (!has(inputs, one.input))
        diagnostics.error(one.mark, fmt::format("target: the model has no input named '{}'{}", one.input,
                                                suggestion_or_list(one.input, spec_names(inputs))));
      if (one.target.empty() ? targets.size() != 1 : !has(targets, one.target))
        diagnostics.error(
            one.mark,
            one.target.empty() ? "target: the model has several outputs, so 'target' is ambiguous; give "
                                 "'targets', a mapping from the name of each output to its target"
            : targets.size() == 1
                ? "targets: this option is for models with several outputs, but this model has only one; "
                  "give 'target'"
                : fmt::format("targets: the model has no output named '{}'{}", one.target,
                              suggestion_or_list(one.target, spec_names(targets))));
    }
  }
}

}  // namespace dtrain
