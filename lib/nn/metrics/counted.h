// Base classes of metrics that are computed from counts, such as precision, recall, areas under curves, and
// R^2.
#pragma once

#include <limits>

#include "nn/loss.h"
#include "nn/metrics/target_checks.h"

namespace dtrain {

/// Returns a / b. As in scikit-learn, the result is 0 if b is 0.
inline double ratio(double a, double b) {
  return b == 0 ? 0 : a / b;
}

/// Documentation of the option `name`. run/heads.cpp uses the name when it reports the metric.
inline constexpr auto kMetricName =
    "Name under which the metric is reported. Default: the type of the metric.";

/// The result of a metric whose value is undefined.
inline constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();

/// How a metric interprets the elements of an output. This is determined by the loss of the output.
struct ScoreReading {
  Scores scores = Scores::any;
  bool of_columns = false;  // true if each column is a separate yes/no prediction

  static ScoreReading of(const Loss& loss);
  /// Returns the meaning of the scores as a CountSpec::Scores, for Ops::count. A single column is always a
  /// yes/no prediction, so its logits are logits of a sigmoid.
  CountSpec::Scores counted(int64_t columns) const;
  bool is_logits(int64_t columns) const { return counted(columns) != CountSpec::Scores::probabilities; }
  /// Converts a threshold for probabilities to a threshold for scores. `columns` is the number of columns of
  /// the output.
  float threshold(double probability, int64_t columns) const;
};

/// A metric that is computed from the sums of a CountSpec.
class CountedMetric : public Metric {
 public:
  /// Accepts targets that are class numbers and targets that are floats. The loss of the output determines
  /// which of these two kinds a target has.
  bool check(const TensorSpec& output, const TensorSpec& target,
             const ReportError& report_error) const override {
    return target.dtype == DType::int32 ? is_sparse_target(output, target, report_error)
                                        : is_dense_target(output, target, report_error);
  }
  bool larger_is_better() const final { return true; }
  int64_t sums(const TensorSpec& output, const TensorSpec& target) const final {
    const int64_t columns = output.shape.columns();
    return spec(columns, target.dtype).sums(columns);
  }
  void run(Ops& ops, const MetricArguments& args) const final {
    ops.count(spec(args.columns, args.target.dtype), args);
  }

 protected:
  /// Returns a description of the counts, for predictions with `columns` columns and targets of this dtype.
  virtual CountSpec spec(int64_t columns, DType target) const = 0;
};

/// A counted metric that depends on how the loss interprets the elements of the output. `Derived` must be
/// copyable.
template <class Derived>
class ScoredMetric : public CountedMetric {
 public:
  std::shared_ptr<const Metric> for_loss(const Loss& loss) const final {
    auto copy = std::make_shared<Derived>(static_cast<const Derived&>(*this));
    static_cast<ScoredMetric&>(*copy).reading_ = ScoreReading::of(loss);
    return copy;
  }

 protected:
  const ScoreReading& reading() const { return reading_; }

 private:
  ScoreReading reading_;
};

}  // namespace dtrain
