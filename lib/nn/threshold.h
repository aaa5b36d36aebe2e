// Choosing the decision threshold between two classes.
#pragma once

#include <memory>

#include "config/codec.h"
#include "nn/loss.h"

namespace dtrain {

/// The `threshold:` option: a number, or a goal for which the threshold is chosen on the validation split.
struct ThresholdGoal {
  enum class Kind {
    fixed,              // the threshold is `value`
    f1_score,           // maximizes the F1 score
    balanced_accuracy,  // maximizes the mean of both classes' recalls
    precision,          // maximizes recall among thresholds with a precision of at least `value`
    recall,             // maximizes precision among thresholds with a recall of at least `value`
  };
  Kind kind = Kind::fixed;
  double value = 0.5;
};

template <>
struct Codec<ThresholdGoal> {
  static bool parse(const ConfigNode& node, const std::string& where, ThresholdGoal& out,
                    Diagnostics& diagnostics);
  static ConfigNode write(const ThresholdGoal& goal);
  static Json schema();
};

/// Returns whether an output classifies into two classes: one column holds the probability of the second
/// class, or two columns are scored against a class number.
bool tells_two_classes(const Loss& loss, const TensorSpec& output, const TensorSpec& target);

/// Returns a metric whose result is the threshold that best meets `goal` (not `fixed`) on the counted rows.
/// The second class is predicted if its probability is above the threshold. The threshold is the midpoint of
/// two neighboring scores, so rounding does not move it. Scores are counted in buckets narrower than 1 % of
/// their logit. The result is NaN if only one class occurs.
std::shared_ptr<const Metric> make_threshold_metric(const ThresholdGoal& goal);

/// Returns a metric whose result is {threshold, accuracy, precision, recall, f1_score} of the second class at
/// a fixed threshold.
std::shared_ptr<const Metric> make_threshold_report(double threshold);

}  // namespace dtrain
