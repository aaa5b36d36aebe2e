// Metrics that are computed from the confusion matrix.
#include <cmath>

#include <fmt/format.h>

#include "nn/metrics/class_counts.h"
#include "nn/metrics/table.h"
#include "nn/no_options.h"

namespace dtrain {

enum class Weightage { none, linear, quadratic };
template <>
inline const EnumNames<Weightage> names_of<Weightage> = {
    {Weightage::none, "none"}, {Weightage::linear, "linear"}, {Weightage::quadratic, "quadratic"}};

namespace {

/// Base class of metrics that count rows in a confusion matrix. The matrix is indexed by [class of the
/// target][class of the output]. An output of one column has two classes: no and yes.
template <class Derived>
class ConfusionMetric : public ScoredMetric<Derived> {
 public:
  bool check(const TensorSpec& output, const TensorSpec& target,
             const ReportError& report_error) const override {
    constexpr int64_t kMost = 1000;
    if (!this->CountedMetric::check(output, target, report_error)) return false;
    if (output.shape.columns() <= kMost) return true;
    report_error(fmt::format("expected an output of at most {} classes, but found {} classes in '{}'", kMost,
                             output.shape.columns(), output.name));
    return false;
  }

 protected:
  CountSpec spec(int64_t columns, DType target) const override {
    return {.kind = CountSpec::Kind::confusion,
            .sparse = target == DType::int32,
            .threshold = this->reading().threshold(0.5, columns)};
  }
  static size_t classes(const TensorSpec& output) {
    return static_cast<size_t>(std::max<int64_t>(output.shape.columns(), 2));
  }
};

/// The sums of each row and each column of a confusion matrix of n classes. Rows are the classes of the
/// targets, and columns are the classes of the outputs.
struct ClassTotals {
  std::vector<double> targets, predictions;
  double all = 0;

  ClassTotals(std::span<const double> matrix, size_t n) : targets(n), predictions(n) {
    for (size_t row = 0; row < n; ++row)
      for (size_t column = 0; column < n; ++column) {
        const double count = matrix[row * n + column];
        targets[row] += count;
        predictions[column] += count;
        all += count;
      }
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
    const size_t n = classes(output);
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
    const size_t n = classes(output);
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

struct KappaOptions {
  Weightage weightage = Weightage::none;
  std::optional<std::string> name;
};

/// Cohen's kappa, as in scikit-learn: 1 - (weighted disagreements) / (expected weighted disagreements). The
/// expected disagreements are those of independent random predictions with the same number of rows per class.
class CohenKappa : public ConfusionMetric<CohenKappa> {
 public:
  explicit CohenKappa(const KappaOptions& options) : weightage_(options.weightage) {}

  Json result(std::span<const double> sums, double, const TensorSpec& output) const override {
    const size_t n = classes(output);
    const ClassTotals totals(sums, n);
    double found = 0, expected = 0;
    for (size_t row = 0; row < n; ++row)
      for (size_t column = 0; column < n; ++column) {
        const double weight = disagreement(row, column);
        found += weight * sums[row * n + column];
        expected += weight * totals.targets[row] * totals.predictions[column];
      }
    return expected == 0 ? kNoValue : 1 - found * totals.all / expected;
  }

 private:
  double disagreement(size_t target, size_t predicted) const {
    const double distance = std::abs(static_cast<double>(target) - static_cast<double>(predicted));
    switch (weightage_) {
      case Weightage::linear:
        return distance;
      case Weightage::quadratic:
        return distance * distance;
      case Weightage::none:
        break;
    }
    return distance == 0 ? 0 : 1;
  }

  Weightage weightage_;
};

/// The Matthews correlation coefficient of targets and predictions, in J. Gorodkin's generalization to any
/// number of classes (2004). As in scikit-learn, the result is 0 if the coefficient is undefined.
class MatthewsCorrelation : public ConfusionMetric<MatthewsCorrelation> {
 public:
  explicit MatthewsCorrelation(const NoOptions&) {}

  Json result(std::span<const double> sums, double, const TensorSpec& output) const override {
    const size_t n = classes(output);
    const ClassTotals totals(sums, n);
    double correct = 0, both = 0, of_targets = 0, of_predictions = 0;
    for (size_t c = 0; c < n; ++c) {
      correct += sums[c * n + c];
      both += totals.targets[c] * totals.predictions[c];
      of_targets += totals.targets[c] * totals.targets[c];
      of_predictions += totals.predictions[c] * totals.predictions[c];
    }
    const double all = totals.all * totals.all;
    return ratio(correct * totals.all - both, std::sqrt((all - of_targets) * (all - of_predictions)));
  }
};

class ClassReport : public ScoredMetric<ClassReport> {
 public:
  bool is_number(const TensorSpec&) const override { return false; }
  Json result(std::span<const double> sums, double, const TensorSpec& output) const override {
    // If the output has one column, the sums are a matrix [target: no, yes][output: no, yes].
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
      Schema<NoOptions>("Confusion matrix: a matrix of counts. The entry in row i and column j is the number "
                        "of targets of class i that were predicted as class j."),
      [](const NoOptions&, const ConfigNode&) { return std::make_shared<const ConfusionMatrix>(); });
  table.add_with(
      "mean_iou",
      Schema<NoOptions>(
          "Mean intersection over union: the mean over the classes of TP / (TP + FP + FN). TP, FP and FN are "
          "the numbers of true positives, false positives and false negatives of a class."),
      [](const NoOptions&, const ConfigNode&) { return std::make_shared<const MeanIou>(); });
  table.add<CohenKappa>(
      "cohen_kappa",
      Schema<KappaOptions>("Cohen's kappa: the agreement of predictions and targets, corrected for chance. "
                           "It is 1 if they always agree, and 0 if they agree only as often as by chance.")
          .example("{weightage: quadratic}")
          .optional("weightage", &KappaOptions::weightage,
                    "Weight of a wrong prediction. With `none`, the weight is 1. For classes that have an "
                    "order, `linear` uses the distance between the predicted class and the actual class, and "
                    "`quadratic` uses the square of this distance.")
          .optional("name", &KappaOptions::name, kMetricName));
  table.add<MatthewsCorrelation>(
      "matthews_correlation",
      Schema<NoOptions>("The Matthews correlation coefficient of predicted and actual classes, from -1 to 1. "
                        "It is suitable for classes of different sizes."));
}

}  // namespace dtrain
