#include "nn/metrics/counted.h"
#include "nn/metrics/table.h"

namespace dtrain {

enum class ColumnAverage { none, uniform, by_variance };
template <>
inline const EnumNames<ColumnAverage> names_of<ColumnAverage> = {
    {ColumnAverage::none, "none"},
    {ColumnAverage::uniform, "uniform_average"},
    {ColumnAverage::by_variance, "variance_weighted_average"}};

namespace {

struct R2Options {
  ColumnAverage class_aggregation = ColumnAverage::uniform;
};

class R2Score : public CountedMetric {
 public:
  explicit R2Score(const R2Options& options) : average_(options.class_aggregation) {}

  bool check(const TensorSpec& output, const TensorSpec& target,
             const ReportError& report_error) const override {
    return is_dense_target(output, target, report_error);
  }
  bool is_number(const TensorSpec& output) const override {
    return average_ != ColumnAverage::none || output.shape.columns() == 1;
  }

  /// Returns 1 - residual / variance. As in scikit-learn, a column whose targets are constant has no
  /// variance: its result is 1 if the residual is 0, and 0 otherwise. If all columns are constant, the
  /// variance-weighted average is replaced by the plain mean.
  Json result(std::span<const double> sums, double, const TensorSpec&) const override {
    const size_t columns = sums.size() / 3;
    const double weight = sums[3 * columns];
    Json each = Json::array();
    double sum = 0, weights = 0, plain = 0;
    for (size_t c = 0; c < columns; ++c) {
      const double total = sums[c], squares = sums[columns + c], residual = sums[2 * columns + c];
      const double variance = squares - total * ratio(total, weight);
      // Equal targets can have a tiny variance because of rounding.
      const bool varies = variance > 1e-12 * squares;
      const double value = varies ? 1 - residual / variance : (residual == 0 ? 1 : 0);
      each.push(value);
      const double share = average_ == ColumnAverage::by_variance ? (varies ? variance : 0) : 1;
      plain += value;
      sum += share * value;
      weights += share;
    }
    if (weight == 0) return kNoValue;
    if (average_ == ColumnAverage::none && columns > 1) return each;
    return weights == 0 ? plain / static_cast<double>(columns) : sum / weights;
  }

 protected:
  CountSpec spec(int64_t, DType) const override { return {.kind = CountSpec::Kind::regression}; }

 private:
  ColumnAverage average_;
};

}  // namespace

void add_r2_score(Registry<Metric>& table) {
  table.add<R2Score>("r2_score",
                     Schema<R2Options>("R^2 score (coefficient of determination): the fraction of the "
                                       "targets' variance that the output explains. The best value is 1.")
                         .example("{class_aggregation: none}")
                         .optional("class_aggregation", &R2Options::class_aggregation,
                                   "Averaging over the columns. `uniform_average` is the mean over the "
                                   "columns. `variance_weighted_average` is the mean weighted by the "
                                   "variance of the targets. `none` gives one number per column."));
}

}  // namespace dtrain
