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

/// The interpretation of an output's numbers by a loss: as logits of a sigmoid (each number by itself), as
/// logits of a softmax (over a row), or as probabilities.
enum class Scores { any, sigmoid_logits, softmax_logits, probabilities };

/// A loss. A prediction of shape [..., columns] has rows = batch * (product of the leading extents). The mean
/// loss is the sum over all rows of the global batch divided by the number of rows, or by the sum of the row
/// weights if there are any.
class Loss {
 public:
  virtual ~Loss() = default;
  /// Returns the shape (without the batch axis) and dtype that the target of such an output must have.
  /// Reports an error and returns nullopt if the loss does not support the output.
  virtual std::optional<TensorSpec> target(const TensorSpec& output,
                                           const ReportError& report_error) const = 0;
  /// Returns the range of valid target values for such an output; nullopt if every number is valid.
  virtual std::optional<Bounds> target_bounds(const TensorSpec& /*output*/) const { return std::nullopt; }
  /// Returns how the loss interprets the output's numbers.
  virtual Scores takes() const { return Scores::any; }
  /// Returns the factor of this loss in the sum of all outputs' losses.
  virtual double weight() const { return 1; }
  /// Returns whether this is a classification loss: a row's target names one of the output's columns or, for
  /// a single column, is 0 or 1.
  virtual bool tells_classes() const { return false; }
  /// Returns whether columns are scored independently (regression, multi-label) instead of against each
  /// other.
  virtual bool is_of_columns() const { return false; }
  /// Returns whether the loss is computed over whole samples. A sample's loss then counts for each of its
  /// rows, which must have the same weight.
  virtual bool is_of_samples() const { return false; }
  virtual bool may_be_negative() const { return false; }
  /// Returns whether the activation turns the logits of this loss into its probabilities.
  virtual bool is_probability(const Layer& /*activation*/) const { return false; }
  /// Returns the loss that computes the same value, but reads the input of the final activation instead of
  /// its output. It is fused and numerically stable: cross-entropy from logits instead of from probabilities
  /// after a softmax, or binary cross-entropy after a sigmoid. Returns null if there is none.
  virtual std::shared_ptr<const Loss> before(const Layer& /*activation*/) const { return nullptr; }
  /// Adds the weighted sum over the rows to the total, without the factor weight().
  virtual void run(Ops& ops, const LossArguments& args) const = 0;
};

/// A metric of an output. It accumulates sums over rows, which are added over microbatches, replicas, steps
/// and processes; result() computes the metric from the sums over all data.
class Metric {
 public:
  virtual ~Metric() = default;
  /// Returns the name of the metric that this metric selects for such an output and target ("accuracy"
  /// selects "binary_accuracy"); "" if it does not select among metrics.
  virtual std::string chosen_kind(const TensorSpec& /*output*/, const TensorSpec& /*target*/) const {
    return "";
  }
  /// Returns whether the metric supports the output and its target (whose form the loss determines); reports
  /// an error otherwise.
  virtual bool check(const TensorSpec& output, const TensorSpec& target,
                     const ReportError& report_error) const = 0;
  /// Returns the metric adapted to an output with this loss; null if no change is needed.
  virtual std::shared_ptr<const Metric> for_loss(const Loss& /*loss*/) const { return nullptr; }
  /// Returns whether larger results are better; only for metrics whose result is a number.
  virtual bool larger_is_better() const = 0;
  /// Returns the number of sums that the metric accumulates for such an output.
  virtual int64_t sums(const TensorSpec& /*output*/, const TensorSpec& /*target*/) const { return 1; }
  /// Adds the weighted sums over the rows to args.sums.
  virtual void run(Ops& ops, const MetricArguments& args) const = 0;
  /// Returns whether result() is a number; otherwise it is an array, which cannot be monitored.
  virtual bool is_number(const TensorSpec& /*output*/) const { return true; }
  /// Returns the power of the target's unit in result(): 2 for the mean squared error, 0 if it has no unit.
  virtual int unit_power() const { return 0; }
  /// Returns the metric's value from the sums over all rows; NaN if it is undefined. `weight` is the number
  /// of rows, or the sum of their weights.
  virtual Json result(std::span<const double> sums, double weight, const TensorSpec& output) const;
  /// Returns an upper bound on the error of result() that comes from counting nearby scores in one bucket; 0
  /// if the result is exact.
  virtual double uncertainty(std::span<const double> /*sums*/, const TensorSpec& /*output*/) const {
    return 0;
  }
  /// If the metric is the area under a curve, returns the curve as {true_positives, false_positives}: arrays
  /// of counts that grow as the threshold falls; the last elements are the totals. Returns null if there is
  /// no curve, or several.
  virtual Json curve(std::span<const double> /*sums*/, const TensorSpec& /*output*/) const { return {}; }
  /// Returns the version of the sums' meaning. Increase it when the meaning changes but not the number of
  /// sums: a checkpoint written within an epoch may hold sums of an earlier version.
  virtual int sums_version() const { return 1; }
};

/// Returns a metric whose result is an array with one object per class: {class, support, precision, recall,
/// f1_score}. An output of one column predicts class 1 above 0.5, otherwise class 0. An output of several
/// columns predicts each class whose column is above 0.5 if the loss scores columns independently, otherwise
/// the class of the largest column.
std::shared_ptr<const Metric> make_class_report();

template <>
const Registry<Loss>& registry<Loss>();
template <>
const Registry<Metric>& registry<Metric>();

}  // namespace dtrain
