// Metrics that follow from counts: precision and recall, curves, R^2.
#pragma once

#include <limits>

#include "nn/loss.h"
#include "nn/metrics/target_checks.h"

namespace dtrain {

/// a / b; 0 where there is nothing to divide by, as scikit-learn has it.
inline double ratio(double a, double b) {
  return b == 0 ? 0 : a / b;
}

/// The option `name`, by which run/heads.cpp reports a metric.
inline constexpr auto kMetricName = "what it is reported as; its kind where not given";

/// Where a metric has no value.
inline constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();

/// How a metric reads an output's numbers: as the output's loss takes them.
struct ScoreReading {
  Scores scores = Scores::any;
  bool of_columns = false;  // each column is the score of a yes or no of its own

  static ScoreReading of(const Loss& loss);
  /// What counting is told of rows of so many columns. A single column is a yes or no whatever it comes from.
  CountSpec::Scores counted(int64_t columns) const;
  bool is_logits(int64_t columns) const { return counted(columns) != CountSpec::Scores::probabilities; }
  /// What the scores of such rows are compared with for a threshold between probabilities.
  float threshold(double probability, int64_t columns) const;
};

/// A metric of the sums that a CountSpec names.
class CountedMetric : public Metric {
 public:
  /// Class numbers or float numbers, as the output's loss has them.
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
  /// For predictions of so many columns and targets of this type.
  virtual CountSpec spec(int64_t columns, DType target) const = 0;
};

/// A counted metric that depends on what the output's loss takes its numbers for. `Derived` can be copied.
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
