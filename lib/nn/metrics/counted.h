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

/// The option `name`, by which train/heads.cpp reports a metric.
inline constexpr auto kMetricName = "what it is reported as; its kind where not given";

/// Where a metric has no value.
inline constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();

/// The score of a threshold between 0 and 1, where scores are logits.
float logit_of(double threshold);

/// A metric of the sums that a CountSpec names.
class CountedMetric : public Metric {
 public:
  /// Class numbers or float numbers, as the output's loss has them.
  bool check(const TensorSpec& output, const TensorSpec& target,
             const ReportError& report_error) const override {
    return target.dtype == DType::int32 ? is_sparse_target(output, target, report_error)
                                        : is_dense_target(output, target, report_error);
  }
  int64_t sums(const TensorSpec& output, const TensorSpec& target) const final {
    const int64_t columns = columns_of(output);
    return spec(columns, target.dtype).sums(columns);
  }
  void run(Ops& ops, const MetricArguments& args) const final {
    ops.count(spec(args.columns, args.target.dtype), args);
  }

 protected:
  /// For predictions of so many columns and targets of this type.
  virtual CountSpec spec(int64_t columns, DType target) const = 0;
};

}  // namespace dtrain
