// The interfaces of losses and metrics.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/tensor_spec.h"
#include "config/registry.h"
#include "nn/layer.h"
#include "ops/ops.h"

namespace dtrain {

/// The closed interval from `least` to `most`.
struct Bounds {
  double least = 0, most = 0;
};

/// How a loss interprets the elements of an output: each element as the logit of a sigmoid, each row as the
/// logits of a softmax, or each element as a probability. `any`: the loss accepts all numbers.
enum class Scores { any, sigmoid_logits, softmax_logits, probabilities };

/// A loss. A prediction has the shape [..., columns]. The number of rows is the batch size times the product
/// of the leading extents. The mean loss is a sum over all rows of the global batch, divided by the number of
/// rows. If rows have weights, it is divided by the sum of these weights.
class Loss {
 public:
  virtual ~Loss() = default;
  /// Returns the shape (without the batch axis) and the dtype that the target must have for this output. If
  /// the loss does not support the output, reports an error and returns nullopt.
  virtual std::optional<TensorSpec> target(const TensorSpec& output,
                                           const ReportError& report_error) const = 0;
  /// Returns the range of valid target values for this output. Returns nullopt if all numbers are valid.
  virtual std::optional<Bounds> target_bounds(const TensorSpec& /*output*/) const { return std::nullopt; }
  /// Returns how this loss interprets the elements of an output.
  virtual Scores takes() const { return Scores::any; }
  /// Returns the factor of this loss in the total loss, which is the sum over all outputs.
  virtual double weight() const { return 1; }
  /// Returns whether this is a classification loss. In a classification loss, the target of a row names one
  /// of the output's columns. If the output has a single column, the target is 0 or 1.
  virtual bool tells_classes() const { return false; }
  /// Returns whether each column is a separate prediction, as in regression and multi-label classification.
  /// If false, the columns of a row compete, as in a softmax.
  virtual bool is_of_columns() const { return false; }
  /// Returns whether the loss is computed for whole samples instead of rows. The loss of a sample then counts
  /// for each of its rows, and all rows of a sample must have the same weight.
  virtual bool is_of_samples() const { return false; }
  virtual bool may_be_negative() const { return false; }
  /// Returns whether the activation, such as a softmax, converts logits to the probabilities that this loss
  /// expects.
  virtual bool is_probability(const Layer& /*activation*/) const { return false; }
  /// Returns a loss that computes the same value from the input of the final activation instead of its
  /// output. Such a loss is fused with the activation and numerically stable. For example, a cross-entropy
  /// reads the logits before a softmax, or a binary cross-entropy reads the logits before a sigmoid. Returns
  /// null if there is no such loss.
  virtual std::shared_ptr<const Loss> before(const Layer& /*activation*/) const { return nullptr; }
  /// Adds the weighted sum of the loss over all rows to the total. The factor weight() is not applied.
  virtual void run(Ops& ops, const LossArguments& args) const = 0;
};

/// A metric of an output. It accumulates sums over rows. The sums of all microbatches, replicas, steps and
/// processes are added, and result() computes the metric from the total.
class Metric {
 public:
  virtual ~Metric() = default;
  /// Some metrics select another metric for the given output and target: "accuracy" selects
  /// "binary_accuracy", for example. Returns the name of the selected metric, or "" if this metric does not
  /// select another one.
  virtual std::string chosen_kind(const TensorSpec& /*output*/, const TensorSpec& /*target*/) const {
    return "";
  }
  /// Returns whether the metric supports the output and its target. Reports an error otherwise. The loss of
  /// the output determines the form of the target.
  virtual bool check(const TensorSpec& output, const TensorSpec& target,
                     const ReportError& report_error) const = 0;
  /// Returns a copy of the metric that is adapted to an output with this loss. Returns null if the metric
  /// does not depend on the loss.
  virtual std::shared_ptr<const Metric> for_loss(const Loss& /*loss*/) const { return nullptr; }
  /// Returns whether larger results are better. The return value has no meaning if is_number() is false.
  virtual bool larger_is_better() const = 0;
  /// Returns the number of sums that the metric accumulates for this output.
  virtual int64_t sums(const TensorSpec& /*output*/, const TensorSpec& /*target*/) const { return 1; }
  /// Adds the weighted sums over the rows to args.sums.
  virtual void run(Ops& ops, const MetricArguments& args) const = 0;
  /// Returns whether result() is a number. If false, it is an array, and the metric cannot be monitored.
  virtual bool is_number(const TensorSpec& /*output*/) const { return true; }
  /// Returns the exponent of the target's unit in the result, such as 2 for the mean squared error. Returns 0
  /// if the result has no unit.
  virtual int unit_power() const { return 0; }
  /// Returns the value of the metric, computed from the sums over all rows. Returns NaN if the value is
  /// undefined. `weight` is the number of rows or, if rows have weights, the sum of the weights.
  virtual Json result(std::span<const double> sums, double weight, const TensorSpec& output) const;
  /// Some metrics count similar scores in one bucket, so their result is not exact. Returns an upper
  /// bound on the error of result(), or 0 if the result is exact.
  virtual double uncertainty(std::span<const double> /*sums*/, const TensorSpec& /*output*/) const {
    return 0;
  }
  /// If the metric is the area under a curve, returns the points of the curve as {true_positives,
  /// false_positives}. Both are arrays of counts, for falling thresholds, so the counts increase and the last
  /// elements are the totals. Returns null if the metric has no curve, or more than one.
  virtual Json curve(std::span<const double> /*sums*/, const TensorSpec& /*output*/) const { return {}; }
  /// Returns the format version of the sums. A checkpoint that was written in the middle of an epoch contains
  /// sums. If a code change gives the sums a different meaning but keeps their number, increase this version,
  /// so that the old sums are not used.
  virtual int sums_version() const { return 1; }
};

/// Returns a metric whose result is an array with one object per class: {class, support, precision, recall,
/// f1_score}. If the output has one column, class 1 is predicted if the column is above 0.5, and class 0
/// otherwise. If the output has several columns and the loss treats each column as a separate prediction,
/// every class whose column is above 0.5 is predicted. Otherwise the class with the largest column is
/// predicted.
std::shared_ptr<const Metric> make_class_report();

template <>
const Registry<Loss>& registry<Loss>();
template <>
const Registry<Metric>& registry<Metric>();

}  // namespace dtrain
