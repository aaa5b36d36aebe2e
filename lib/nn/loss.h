// What training minimises, and what is reported beside it.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/tensor_spec.h"
#include "config/registry.h"
#include "nn/layer.h"
#include "ops/ops.h"

namespace dtrain {

/// The numbers from `least` to `most`, both included.
struct Bounds {
  double least = 0, most = 0;
};

/// What a loss takes an output's numbers for: logits that a sigmoid makes probabilities of, each by itself;
/// or a softmax, all of a row together.
enum class Scores { any, sigmoid_logits, softmax_logits, probabilities };

/// A prediction of shape [..., columns] is rows = batch * (leading extents) rows of `columns`.
/// A mean loss is the sum over all rows divided by their number, or by the sum of their weights where they
/// have some, over the whole global batch.
class Loss {
 public:
  virtual ~Loss() = default;
  /// What the target of an output like this must be (shape without the batch axis, dtype); nothing where the
  /// output does not suit, after reporting an error.
  virtual std::optional<TensorSpec> target(const TensorSpec& output,
                                           const ReportError& report_error) const = 0;
  /// The bounds that an output like this sets to its target's numbers; nothing where any number will do.
  virtual std::optional<Bounds> target_bounds(const TensorSpec& /*output*/) const { return std::nullopt; }
  virtual Scores takes() const { return Scores::any; }
  /// What it counts for in the sum of all outputs' losses.
  virtual double weight() const { return 1; }
  /// Whether the class that a row's target names is one of the output's columns, or for a single column 0
  /// or 1.
  virtual bool tells_classes() const { return false; }
  /// Whether columns are scored one by one (regression, labels of their own) and not against each other.
  virtual bool is_of_columns() const { return false; }
  virtual bool may_be_negative() const { return false; }
  /// Whether the activation turns the logits that the loss is about into its probabilities.
  virtual bool is_probability(const Layer& /*activation*/) const { return false; }
  /// The loss that gives the same from the input of a final activation as this from its output, fused and
  /// stable: cross-entropy from logits for probabilities behind a softmax, binary cross-entropy behind a
  /// sigmoid. Null where there is none.
  virtual std::shared_ptr<const Loss> before(const Layer& /*activation*/) const { return nullptr; }
  /// Adds the weighted sum over the rows to the total; weight() is not in it.
  virtual void run(Ops& ops, const LossArguments& args) const = 0;
  /// Keras's {class_name, config} for the checkpoint's training_config; null where Keras has no such loss.
  virtual Json keras_config() const = 0;
};

/// What is reported of an output beside its loss. A metric keeps sums over rows, which are added over
/// microbatches, replicas, steps and processes; what it comes to follows from the sums over all of the data.
class Metric {
 public:
  virtual ~Metric() = default;
  /// The kind that computes the same for such an output and target, where this one chooses among kinds; else
  /// "".
  virtual std::string chosen_kind(const TensorSpec& /*output*/, const TensorSpec& /*target*/) const {
    return "";
  }
  /// Whether the metric suits the output and its target, which is as the loss wants it; reports an error
  /// else.
  virtual bool check(const TensorSpec& output, const TensorSpec& target,
                     const ReportError& report_error) const = 0;
  /// The metric as it is for an output that has this loss; null where that is no other.
  virtual std::shared_ptr<const Metric> for_loss(const Loss& /*loss*/) const { return nullptr; }
  /// Which way is better, of a metric that is a number.
  virtual bool larger_is_better() const = 0;
  /// How many sums it keeps of such an output.
  virtual int64_t sums(const TensorSpec& /*output*/, const TensorSpec& /*target*/) const { return 1; }
  /// Adds the weighted sums over the rows to args.sums.
  virtual void run(Ops& ops, const MetricArguments& args) const = 0;
  /// Whether result() is a number; else it is an array, which nothing can go by.
  virtual bool is_number(const TensorSpec& /*output*/) const { return true; }
  /// The power of the target's unit that result() is in: 2 of the mean squared error; 0 of what has no unit.
  virtual int unit_power() const { return 0; }
  /// What the sums over all rows come to; `weight` is the rows' number, or the sum of their weights. NaN
  /// where that is nothing.
  virtual Json result(std::span<const double> sums, double weight, const TensorSpec& output) const;
  /// The most that result() may be off, as scores that are not equal were counted as if they were; 0 of what
  /// is exact.
  virtual double uncertainty(std::span<const double> /*sums*/, const TensorSpec& /*output*/) const {
    return 0;
  }
  /// The curve that the metric is the area under: {true_positives, false_positives}, counts that grow as the
  /// threshold falls from point to point, of which the last are all; null where there is none, or several.
  virtual Json curve(std::span<const double> /*sums*/, const TensorSpec& /*output*/) const { return {}; }
  /// Raised when the same number of sums comes to mean something else: a checkpoint within an epoch may have
  /// those of an earlier version.
  virtual int sums_version() const { return 1; }
  /// Keras's {class_name, config}, of the metric as it is for such an output and target; null where Keras has
  /// none.
  virtual Json keras_config(const TensorSpec& output, const TensorSpec& target) const = 0;
};

/// Of every class its rows, its precision, recall and F1 score: an array of one object a class, {class,
/// support, precision, recall, f1_score}. An output of one column says yes above 0.5, which is its class 1;
/// of several columns each says so by itself, where its loss has it so, or the greatest is the class.
std::shared_ptr<const Metric> make_class_report();

template <>
const Registry<Loss>& registry<Loss>();
template <>
const Registry<Metric>& registry<Metric>();

}  // namespace dtrain
