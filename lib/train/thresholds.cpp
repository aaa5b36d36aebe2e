#include "train/thresholds.h"

#include <cmath>

#include <fmt/format.h>

#include "train/heads.h"

namespace dtrain {

namespace {

bool has_threshold(const RunConfig& config, size_t head) {
  const Head& one = config.heads[head];
  return tells_two_classes(*one.loss, config.graph.spec(one.output), one.target);
}

std::string goal_of(const RunConfig& config) {
  return Codec<std::optional<ThresholdGoal>>::write(config.train.threshold).to_yaml();
}

}  // namespace

std::string name_of_threshold(const RunConfig& config, size_t head) {
  return (config.heads.size() > 1 ? config.heads[head].target.name + "_" : "") + "threshold";
}

void add_thresholds(RunConfig& config, bool has_validation, Diagnostics& diagnostics) {
  if (!config.train.threshold) return;
  const ThresholdGoal& goal = *config.train.threshold;
  const Mark mark = config.place({"train", "threshold"});
  if (goal.kind != ThresholdGoal::Kind::fixed && !has_validation)
    diagnostics.error(
        mark,
        "threshold: is chosen on the validation split, which the data set does not have; give it "
        "one (validation: {split: {of: train, fraction: 0.15}}), or a number here");
  if (config.graph.nodes.empty()) return;
  bool found = false;
  for (size_t head = 0; head < config.heads.size(); ++head) {
    if (!config.heads[head].loss) return;
    if (!has_threshold(config, head)) continue;
    found = true;
    if (goal.kind == ThresholdGoal::Kind::fixed) continue;
    const std::string name = name_of_threshold(config, head);
    if (find_metric(config, name))
      return diagnostics.error(mark, fmt::format("threshold: is reported as '{}', as is a metric; give the "
                                                 "metric another name",
                                                 name));
    add_metric(config, head, name, make_threshold_metric(goal));
  }
  if (!found)
    diagnostics.error(mark,
                      "threshold: is for an output of two classes: one unit with binary_crossentropy, or two "
                      "with sparse_categorical_crossentropy");
}

std::optional<double> saved_threshold(const SavedRun& run, size_t head) {
  const auto& goal = run.config.train.threshold;
  if (!goal || !has_threshold(run.config, head)) return std::nullopt;
  if (goal->kind == ThresholdGoal::Kind::fixed) return goal->value;
  if (goal_of(saved_config(run.checkpoint, {})) != goal_of(run.config))
    throw UserError(
        fmt::format("{}: its threshold was chosen for another goal than train.threshold states; "
                    "state that one, or a number",
                    run.checkpoint.path()));
  const TrainingState state = saved_state(run.checkpoint);
  const Json* value = state.history.last().find("val_" + name_of_threshold(run.config, head));
  if (!value || !value->is_number() || !std::isfinite(value->as_double())) return std::nullopt;
  return value->as_double();
}

}  // namespace dtrain
