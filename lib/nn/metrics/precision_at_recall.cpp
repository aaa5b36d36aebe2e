#include <algorithm>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "base/text.h"
#include "nn/metrics/counted.h"
#include "nn/metrics/score_buckets.h"
#include "nn/metrics/table.h"

namespace dtrain {
namespace {

struct PrecisionAtRecallOptions {
  double recall = 0;
  std::optional<int64_t> num_thresholds, class_id;
  std::optional<std::string> name;
};

/// The greatest precision among all thresholds whose recall is at least the given recall. The thresholds are
/// the boundaries between buckets of scores.
class PrecisionAtRecall : public ScoredMetric<PrecisionAtRecall> {
 public:
  explicit PrecisionAtRecall(const PrecisionAtRecallOptions& options) : options_(options) {}

  bool check(const TensorSpec& output, const TensorSpec& target,
             const ReportError& report_error) const override {
    if (!CountedMetric::check(output, target, report_error)) return false;
    const int64_t columns = output.shape.columns();
    if (options_.class_id.value_or(0) < columns) return true;
    report_error(
        fmt::format("class_id must be less than the number of columns, but class_id is {} and '{}' has {}",
                    *options_.class_id, output.name, format_plural(columns, "column")));
    return false;
  }
  /// As in Keras, the result is 0 if there are no positives.
  Json result(std::span<const double> sums, double, const TensorSpec& output) const override {
    return best(counts_in(sums, output), [](double hits, double before, double negatives) {
      return ratio(hits, hits + before + negatives);
    });
  }
  /// Returns an upper bound on the error of result(). The exact precision is greatest if all positives of a
  /// bucket have higher scores than its negatives, because a threshold within the bucket is then better than
  /// the boundary.
  double uncertainty(std::span<const double> sums, const TensorSpec& output) const override {
    const double most = best(counts_in(sums, output),
                             [](double hits, double before, double) { return ratio(hits, hits + before); });
    return most - result(sums, 0, output).as_double();
  }

 protected:
  CountSpec spec(int64_t columns, DType target) const override {
    return {.kind = CountSpec::Kind::buckets,
            .sparse = target == DType::int32,
            .scores = reading().counted(columns),
            .buckets = buckets(columns),
            .by_column = options_.class_id.has_value()};
  }

 private:
  int64_t buckets(int64_t columns) const {
    return options_.num_thresholds.value_or(options_.class_id ? default_buckets(columns)
                                                              : default_buckets(1));
  }
  /// Returns the counts of the column class_id. If class_id is not set, returns the counts of all columns
  /// together.
  BucketCounts counts_in(std::span<const double> sums, const TensorSpec& output) const {
    const auto n = static_cast<size_t>(buckets(output.shape.columns()));
    const size_t begin = 2 * n * static_cast<size_t>(options_.class_id.value_or(0));
    return {sums.subspan(begin, n), sums.subspan(begin + n, n)};
  }
  /// Returns the largest precision among all buckets that reach the required recall. The function
  /// `precision` computes the precision from (true positives, false positives of higher buckets, negatives of
  /// the bucket).
  template <class Precision>
  double best(const BucketCounts& counts, Precision precision) const {
    const double all = BucketCounts::sum(counts.positives);
    double best = 0;
    counts.for_each_bucket([&](double positives, double negatives, double hits, double misses) {
      hits += positives;
      if (ratio(hits, all) >= options_.recall) best = std::max(best, precision(hits, misses, negatives));
    });
    return best;
  }

  PrecisionAtRecallOptions options_;
};

}  // namespace

void add_precision_at_recall(Registry<Metric>& table) {
  using Options = PrecisionAtRecallOptions;
  table.add<PrecisionAtRecall>(
      "precision_at_recall",
      Schema<Options>("The highest precision among all thresholds whose recall is at least `recall`.")
          .example("{recall: 0.9}")
          .required("recall", &Options::recall, "the minimum recall", between(0.0, 1.0))
          .optional("num_thresholds", &Options::num_thresholds,
                    fmt::format("{}, if class_id is set", kNumThresholds),
                    between<std::optional<int64_t>>(2, 1048576))
          .optional("class_id", &Options::class_id,
                    "Index (counted from 0) of the column whose yes/no predictions are counted. Default: all "
                    "columns together.",
                    at_least<std::optional<int64_t>>(0))
          .optional("name", &Options::name, kMetricName));
}

}  // namespace dtrain
