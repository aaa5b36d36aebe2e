// Choosing the decision threshold between two classes.
#pragma once

#include <memory>

#include "config/codec.h"
#include "nn/loss.h"

namespace dtrain {

/// The `threshold:` option: a number or a goal. For a goal, training chooses the threshold that best
/// reaches the goal on the validation split.
struct ThresholdGoal {
  enum class Kind {
    fixed,              // the threshold is `value`
    f1_score,           // maximizes the F1 score
    balanced_accuracy,  // maximizes the mean of both classes' recalls
    precision,          // maximizes the recall among all thresholds with a precision of at least `value`
    recall,             // maximizes the precision among all thresholds with a recall of at least `value`
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

/// Returns whether an output distinguishes two classes. Such an output has one column, the probability of the
/// second class, or it has two columns and the target is a class number.
bool tells_two_classes(const Loss& loss, const TensorSpec& output, const TensorSpec& target);

/// Returns a metric whose result is the threshold that best reaches `goal` for the counted rows. `goal` must
/// not be `fixed`. The second class is predicted if its probability is above the threshold. The threshold is
/// the midpoint between two neighboring scores, so that small rounding differences do not change
/// predictions. Scores are counted in buckets, which are narrower than 1 % of their logit. The result is NaN
/// if all rows are in one class.
std::shared_ptr<const Metric> make_threshold_metric(const ThresholdGoal& goal);

/// Returns a metric whose result describes the predictions of the second class at a fixed threshold, as
/// {threshold, accuracy, precision, recall, f1_score}.
std::shared_ptr<const Metric> make_threshold_report(double threshold);

}  // namespace dtrain
