#include "run/thresholds.h"

#include <fmt/format.h>

#include "run/heads.h"

namespace dtrain {

std::string name_of_threshold(const RunConfig& config, size_t head) {
  return (config.heads.size() > 1 ? config.heads[head].target.name + "_" : "") + "threshold";
}

bool can_have_threshold(const RunConfig& config, size_t head) {
  const Head& one = config.heads[head];
  return one.loss && tells_two_classes(*one.loss, config.graph.spec(one.output), one.target);
}

void add_thresholds(RunConfig& config, bool has_validation, Diagnostics& diagnostics) {
  if (!config.train.threshold) return;
  const ThresholdGoal& goal = *config.train.threshold;
  const Mark mark = config.place({"train", "threshold"});
  if (goal.kind != ThresholdGoal::Kind::fixed && !has_validation)
    diagnostics.error(mark,
                      "threshold: the threshold is chosen on the validation split, but the data set has no "
                      "validation split; add `validation: {split: {of: train, fraction: 0.15}}` to the data "
                      "set, or set the threshold to a number");
  if (config.graph.nodes.empty()) return;
  bool found = false;
  for (size_t head = 0; head < config.heads.size(); ++head) {
    if (!config.heads[head].loss) return;
    if (!can_have_threshold(config, head)) continue;
    found = true;
    if (goal.kind == ThresholdGoal::Kind::fixed) continue;
    const std::string name = name_of_threshold(config, head);
    if (find_metric(config, name))
      return diagnostics.error(
          mark, fmt::format("threshold: the threshold is reported as '{}', which is also the name of "
                            "a metric; give the metric another name",
                            name));
    add_metric(config, head, name, make_threshold_metric(goal));
  }
  if (!found)
    diagnostics.error(mark,
                      "threshold: this option requires an output with two classes, such as one unit with "
                      "binary_crossentropy or two units with sparse_categorical_crossentropy");
}

}  // namespace dtrain
