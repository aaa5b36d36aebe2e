#include "train/evaluation/saved_threshold.h"

#include <cmath>

#include <fmt/format.h>

#include "run/thresholds.h"

namespace dtrain {

namespace {

std::string goal_of(const RunConfig& config) {
  return Codec<std::optional<ThresholdGoal>>::write(config.train.threshold).to_yaml();
}

}  // namespace

std::optional<double> saved_threshold(const SavedRun& run, size_t head) {
  const auto& goal = run.config.train.threshold;
  if (!goal || !can_have_threshold(run.config, head)) return std::nullopt;
  if (goal->kind == ThresholdGoal::Kind::fixed) return goal->value;
  if (goal_of(saved_config(run.checkpoint, {})) != goal_of(run.config))
    throw UserError(
        fmt::format("{}: the threshold in this checkpoint was not chosen for the goal in train.threshold; "
                    "set the same goal as in the training, or a number",
                    run.checkpoint.path()));
  const TrainingState state = saved_state(run.checkpoint);
  const Json* value = state.history.last().find("val_" + name_of_threshold(run.config, head));
  if (!value || !value->is_number() || !std::isfinite(value->as_double())) return std::nullopt;
  return value->as_double();
}

}  // namespace dtrain
