// The threshold between two classes: chosen by what it is to achieve.
#pragma once

#include <memory>

#include "config/codec.h"
#include "nn/loss.h"

namespace dtrain {

/// `threshold:` of a configuration: a number, or a goal that the scores of the validation split are to reach.
struct ThresholdGoal {
  enum class Kind {
    fixed,              // value
    f1_score,           // the largest F1 score
    balanced_accuracy,  // the largest mean of both classes' recalls
    precision,          // the highest recall whose precision is at least `value`
    recall,             // the highest precision whose recall is at least `value`
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

/// Whether an output tells two classes apart: by the probability of the second in one column, or by two
/// columns for a class number.
bool tells_two_classes(const Loss& loss, const TensorSpec& output, const TensorSpec& target);

/// The threshold that reaches a goal (not fixed) on the rows that were counted: a probability of the second
/// class, above which it is predicted. It lies in the middle between two scores, which are counted in buckets
/// of less than 1 % of their logit, so that rounding does not move it. NaN where only one class occurs.
std::shared_ptr<const Metric> make_threshold_metric(const ThresholdGoal& goal);

/// {threshold, accuracy, precision, recall, f1_score} of the second class at a threshold.
std::shared_ptr<const Metric> make_threshold_report(double threshold);

}  // namespace dtrain
