#include "nn/metrics/table.h"
#include "nn/metrics/target_checks.h"
#include "nn/no_options.h"

namespace dtrain {
namespace {

class MeanAbsoluteError : public Metric {
 public:
  explicit MeanAbsoluteError(const NoOptions&) {}

  bool check(const TensorSpec& output, const TensorSpec& target,
             const ReportError& report_error) const override {
    return is_dense_target(output, target, report_error);
  }

  void run(Ops& ops, const void* prediction, const View& target, double* total, int64_t rows,
           int64_t columns) const override {
    ops.metric({.kind = MetricSpec::Kind::mean_absolute_error}, prediction, target, total, rows, columns);
  }

  Json keras_config(const TensorSpec&, const TensorSpec&) const override {
    return keras_metric("MeanAbsoluteError");
  }
};

}  // namespace

void add_mean_errors(Registry<Metric>& table) {
  table.add<MeanAbsoluteError>("mean_absolute_error",
                               Schema<NoOptions>("The absolute difference from the target."));
}

}  // namespace dtrain
