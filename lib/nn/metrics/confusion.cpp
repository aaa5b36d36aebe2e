// Metrics computed from the confusion matrix.
#include <cmath>

#include <fmt/format.h>

#include "nn/metrics/class_counts.h"
#include "nn/metrics/table.h"
#include "nn/no_options.h"

namespace dtrain {
namespace {

/// Counts rows by [class of the target][class of the output]. An output of one column has two classes: no,
/// yes.
template <class Derived>
class ConfusionMetric : public ScoredMetric<Derived> {
 public:
  bool check(const TensorSpec& output, const TensorSpec& target,
             const ReportError& report_error) const override {
    constexpr int64_t kMost = 1000;
    if (!this->CountedMetric::check(output, target, report_error)) return false;
    if (output.shape.columns() <= kMost) return true;
    report_error(fmt::format("supports at most {} classes, found {} of '{}'", kMost, output.shape.columns(),
                             output.name));
    return false;
  }

 protected:
  CountSpec spec(int64_t columns, DType target) const override {
    return {.kind = CountSpec::Kind::confusion,
            .sparse = target == DType::int32,
            .threshold = this->reading().threshold(0.5, columns)};
  }
};

/// Returns the count as a JSON integer if it is a whole number.
Json count_as_json(double count) {
  constexpr double kExact = 9007199254740992.0;  // 2^53
  if (count == std::floor(count) && std::abs(count) < kExact) return static_cast<int64_t>(count);
  return count;
}

class ConfusionMatrix : public ConfusionMetric<ConfusionMatrix> {
 public:
  bool is_number(const TensorSpec&) const override { return false; }
  Json result(std::span<const double> sums, double, const TensorSpec& output) const override {
    const auto n = static_cast<size_t>(std::max<int64_t>(output.shape.columns(), 2));
    Json matrix = Json::array();
    for (size_t row = 0; row < n; ++row) {
      Json counts = Json::array();
      for (size_t column = 0; column < n; ++column) counts.push(count_as_json(sums[row * n + column]));
      matrix.push(std::move(counts));
    }
    return matrix;
  }
};

class MeanIou : public ConfusionMetric<MeanIou> {
 public:
  Json result(std::span<const double> sums, double, const TensorSpec& output) const override {
    const auto n = static_cast<size_t>(std::max<int64_t>(output.shape.columns(), 2));
    std::vector<double> counts(3 * n);
    for (size_t row = 0; row < n; ++row)
      for (size_t column = 0; column < n; ++column) {
        const double count = sums[row * n + column];
        if (row == column) counts[row] += count;
        counts[n + column] += count;
        counts[2 * n + row] += count;
      }
    return average_of(counts, &ClassCounts::iou, Average::macro);
  }
};

class ClassReport : public ScoredMetric<ClassReport> {
 public:
  bool is_number(const TensorSpec&) const override { return false; }
  Json result(std::span<const double> sums, double, const TensorSpec& output) const override {
    // With one column the sums are [target: no, yes][output: no, yes].
    if (output.shape.columns() == 1)
      return Json::array()
          .push(row_of(0, {sums[0], sums[0] + sums[2], sums[0] + sums[1]}))
          .push(row_of(1, {sums[3], sums[1] + sums[3], sums[2] + sums[3]}));
    Json report = Json::array();
    for (size_t c = 0; c < sums.size() / 3; ++c) report.push(row_of(c, counts_of(sums, c)));
    return report;
  }

 protected:
  CountSpec spec(int64_t columns, DType target) const override {
    return {.kind = columns == 1 ? CountSpec::Kind::confusion : CountSpec::Kind::classes,
            .sparse = target == DType::int32,
            .by_threshold = reading().of_columns,
            .threshold = reading().threshold(0.5, columns)};
  }

 private:
  static Json row_of(size_t number, const ClassCounts& counts) {
    return Json::object()
        .set("class", number)
        .set("support", count_as_json(counts.actual))
        .set("precision", counts.precision())
        .set("recall", counts.recall())
        .set("f1_score", counts.f1());
  }
};

}  // namespace

std::shared_ptr<const Metric> make_class_report() {
  return std::make_shared<const ClassReport>();
}

void add_confusion_metrics(Registry<Metric>& table) {
  table.add_with(
      "confusion_matrix",
      Schema<NoOptions>(
          "How often rows of each class (rows of the matrix) were predicted as each class (columns)."),
      [](const NoOptions&, const ConfigNode&) { return std::make_shared<const ConfusionMatrix>(); });
  table.add_with("mean_iou",
                 Schema<NoOptions>("Intersection over union of the rows of a class and the rows predicted as "
                                   "the class; mean over the classes."),
                 [](const NoOptions&, const ConfigNode&) { return std::make_shared<const MeanIou>(); });
}

}  // namespace dtrain
