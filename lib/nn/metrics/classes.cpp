// Precision, recall and what else follows from how often each class was predicted, and rightly so.
#include <cmath>

#include <fmt/format.h>

#include "nn/metrics/counted.h"
#include "nn/metrics/table.h"
#include "nn/no_options.h"

namespace dtrain {

/// Over classes: micro counts all of them together; macro is the mean over those that were predicted or were
/// a target, weighted by their rows in `weighted`; none is one number a class.
enum class Average { none, micro, macro, weighted };
template <>
inline const EnumNames<Average> names_of<Average> = {{Average::none, "none"},
                                                     {Average::micro, "micro"},
                                                     {Average::macro, "macro"},
                                                     {Average::weighted, "weighted"}};

float logit_of(double threshold) {
  return static_cast<float>(std::log(threshold) - std::log1p(-threshold));
}

namespace {

/// What the classes' sums say of one class, or of all.
struct Counts {
  double right = 0, predicted = 0, actual = 0;

  double precision() const { return ratio(right, predicted); }
  double recall() const { return ratio(right, actual); }
  double f1() const { return ratio(2 * right, predicted + actual); }
  double iou() const { return ratio(right, predicted + actual - right); }
};

Counts counts_of(std::span<const double> sums, size_t c) {
  const size_t classes = sums.size() / 3;
  return {sums[c], sums[classes + c], sums[2 * classes + c]};
}

using ScoreOfCounts = double (Counts::*)() const;

Json average_of(std::span<const double> sums, ScoreOfCounts score, Average average) {
  const size_t classes = sums.size() / 3;
  Counts all;
  Json each = Json::array();
  double sum = 0, weights = 0;
  for (size_t c = 0; c < classes; ++c) {
    const Counts counts = counts_of(sums, c);
    all = {all.right + counts.right, all.predicted + counts.predicted, all.actual + counts.actual};
    const double value = (counts.*score)();
    each.push(value);
    const bool occurs = counts.predicted != 0 || counts.actual != 0;
    const double weight = average == Average::weighted ? counts.actual : (occurs ? 1.0 : 0.0);
    sum += weight * value;
    weights += weight;
  }
  if (average == Average::micro || classes == 1) return (all.*score)();
  if (average == Average::none) return each;
  return ratio(sum, weights);
}

struct ClassOptions {
  std::optional<std::string> name;
  Average average = Average::none;
  std::optional<double> threshold;
};

/// Where each column says yes or no by itself, the threshold between them.
class ClassMetric : public CountedMetric {
 public:
  /// What the metric is in Keras, and how it is read.
  struct Kind {
    std::string keras_class;
    ScoreOfCounts score;
    bool by_threshold;  // float targets say yes or no for each column, even without a threshold
  };
  ClassMetric(Kind kind, const ClassOptions& options, bool logits = false)
      : kind_(std::move(kind)), options_(options), logits_(logits) {}

  std::shared_ptr<const Metric> for_scores(Scores scores) const override {
    if (scores != Scores::logits || logits_) return nullptr;
    return std::make_shared<const ClassMetric>(kind_, options_, true);
  }
  bool is_number(const TensorSpec& output) const override {
    return options_.average != Average::none || columns_of(output) == 1;
  }
  Json result(std::span<const double> sums, double, const TensorSpec&) const override {
    return average_of(sums, kind_.score, options_.average);
  }
  Json keras_config(const TensorSpec& output, const TensorSpec& target) const override {
    if (target.dtype == DType::int32) return {};  // Keras's take 0 and 1 for each class
    const bool macro = options_.average != Average::micro;
    Json config = Json::object();
    if (kind_.keras_class == "F1Score") {
      if (options_.average != Average::none)
        config.set("average", Codec<Average>::write(options_.average).text());
      if (options_.threshold || columns_of(output) == 1)
        config.set("threshold", options_.threshold.value_or(0.5));
      return keras_metric("F1Score", std::move(config));
    }
    if (macro && columns_of(output) > 1) return {};  // Keras's are micro
    return keras_metric(kind_.keras_class, config.set("thresholds", options_.threshold.value_or(0.5)));
  }

 protected:
  CountSpec spec(int64_t columns, DType target) const override {
    const double threshold = options_.threshold.value_or(0.5);
    const bool sparse = target == DType::int32;
    return {.kind = CountSpec::Kind::classes,
            .sparse = sparse,
            .by_threshold = columns == 1 || (!sparse && (kind_.by_threshold || options_.threshold)),
            .threshold = logits_ ? logit_of(threshold) : static_cast<float>(threshold)};
  }

 private:
  Kind kind_;
  ClassOptions options_;
  bool logits_;
};

/// The output's class and the target's, by [class of the target][class of the output]; of one column: no,
/// yes.
class ConfusionMetric : public CountedMetric {
 public:
  explicit ConfusionMetric(bool logits) : logits_(logits) {}

  bool check(const TensorSpec& output, const TensorSpec& target,
             const ReportError& report_error) const override {
    constexpr int64_t kMost = 1000;
    if (!CountedMetric::check(output, target, report_error)) return false;
    if (columns_of(output) <= kMost) return true;
    report_error(
        fmt::format("takes {} classes at most, found {} of '{}'", kMost, columns_of(output), output.name));
    return false;
  }

 protected:
  CountSpec spec(int64_t, DType target) const override {
    return {.kind = CountSpec::Kind::confusion,
            .sparse = target == DType::int32,
            .threshold = logits_ ? 0.0f : 0.5f};
  }
  bool logits() const { return logits_; }

 private:
  bool logits_;
};

/// Whole numbers as such.
Json count_as_json(double count) {
  constexpr double kExact = 9007199254740992.0;  // 2^53
  if (count == std::floor(count) && std::abs(count) < kExact) return static_cast<int64_t>(count);
  return count;
}

class ConfusionMatrix : public ConfusionMetric {
 public:
  explicit ConfusionMatrix(bool logits = false) : ConfusionMetric(logits) {}

  std::shared_ptr<const Metric> for_scores(Scores scores) const override {
    if (scores != Scores::logits || logits()) return nullptr;
    return std::make_shared<const ConfusionMatrix>(true);
  }
  bool is_number(const TensorSpec&) const override { return false; }
  Json result(std::span<const double> sums, double, const TensorSpec& output) const override {
    const auto n = static_cast<size_t>(std::max<int64_t>(columns_of(output), 2));
    Json matrix = Json::array();
    for (size_t row = 0; row < n; ++row) {
      Json counts = Json::array();
      for (size_t column = 0; column < n; ++column) counts.push(count_as_json(sums[row * n + column]));
      matrix.push(std::move(counts));
    }
    return matrix;
  }
  Json keras_config(const TensorSpec&, const TensorSpec&) const override { return {}; }
};

class MeanIou : public ConfusionMetric {
 public:
  explicit MeanIou(bool logits = false) : ConfusionMetric(logits) {}

  std::shared_ptr<const Metric> for_scores(Scores scores) const override {
    if (scores != Scores::logits || logits()) return nullptr;
    return std::make_shared<const MeanIou>(true);
  }
  Json result(std::span<const double> sums, double, const TensorSpec& output) const override {
    const auto n = static_cast<size_t>(std::max<int64_t>(columns_of(output), 2));
    std::vector<double> counts(3 * n);
    for (size_t row = 0; row < n; ++row)
      for (size_t column = 0; column < n; ++column) {
        const double count = sums[row * n + column];
        if (row == column) counts[row] += count;
        counts[n + column] += count;
        counts[2 * n + row] += count;
      }
    return average_of(counts, &Counts::iou, Average::macro);
  }
  Json keras_config(const TensorSpec& output, const TensorSpec& target) const override {
    if (columns_of(output) == 1) return {};  // Keras's takes the number of a class for it
    return keras_metric("MeanIoU", Json::object()
                                       .set("num_classes", columns_of(output))
                                       .set("sparse_y_true", target.dtype == DType::int32)
                                       .set("sparse_y_pred", false));
  }
};

class ClassReport : public CountedMetric {
 public:
  explicit ClassReport(bool of_columns, bool logits = false) : of_columns_(of_columns), logits_(logits) {}

  std::shared_ptr<const Metric> for_scores(Scores scores) const override {
    if (scores != Scores::logits || logits_) return nullptr;
    return std::make_shared<const ClassReport>(of_columns_, true);
  }
  bool is_number(const TensorSpec&) const override { return false; }
  Json result(std::span<const double> sums, double, const TensorSpec& output) const override {
    // Of one column the sums are [the target: no, yes][the output: no, yes].
    if (columns_of(output) == 1)
      return Json::array()
          .push(row_of(0, {sums[0], sums[0] + sums[2], sums[0] + sums[1]}))
          .push(row_of(1, {sums[3], sums[1] + sums[3], sums[2] + sums[3]}));
    Json report = Json::array();
    for (size_t c = 0; c < sums.size() / 3; ++c) report.push(row_of(c, counts_of(sums, c)));
    return report;
  }
  Json keras_config(const TensorSpec&, const TensorSpec&) const override { return {}; }

 protected:
  CountSpec spec(int64_t columns, DType target) const override {
    return {.kind = columns == 1 ? CountSpec::Kind::confusion : CountSpec::Kind::classes,
            .sparse = target == DType::int32,
            .by_threshold = of_columns_,
            .threshold = logits_ ? 0.0f : 0.5f};
  }

 private:
  static Json row_of(size_t number, const Counts& counts) {
    return Json::object()
        .set("class", number)
        .set("support", count_as_json(counts.actual))
        .set("precision", counts.precision())
        .set("recall", counts.recall())
        .set("f1_score", counts.f1());
  }

  bool of_columns_, logits_;
};

struct PrecisionOptions {
  std::optional<std::string> name;
  Average average = Average::micro;
  std::optional<double> thresholds;
};

}  // namespace

std::shared_ptr<const Metric> make_class_report(bool of_columns) {
  return std::make_shared<const ClassReport>(of_columns);
}

void add_class_metrics(Registry<Metric>& table) {
  constexpr auto kThreshold =
      "for an output of one column, or of columns that say yes or no each: above it is yes; 0.5 where not "
      "given";
  constexpr auto kAverage =
      "over classes: all counts together (micro), the mean (macro), the mean weighted by their rows "
      "(weighted), "
      "or a number for each (none)";
  const auto precision_like = [&](const std::string& name, const std::string& keras_class,
                                  ScoreOfCounts score, const std::string& doc) {
    table.add_with(name,
                   Schema<PrecisionOptions>(doc)
                       .example("{average: macro}")
                       .optional("average", &PrecisionOptions::average, kAverage)
                       .optional("thresholds", &PrecisionOptions::thresholds, kThreshold,
                                 between<std::optional<double>>(0.0, 1.0))
                       .optional("name", &PrecisionOptions::name, kMetricName),
                   [=](const PrecisionOptions& options, const ConfigNode&) {
                     return std::make_shared<const ClassMetric>(
                         ClassMetric::Kind{keras_class, score, true},
                         ClassOptions{options.name, options.average, options.thresholds});
                   });
  };
  precision_like("precision", "Precision", &Counts::precision, "How much of what is predicted is right.");
  precision_like("recall", "Recall", &Counts::recall, "How much of what is there is predicted.");
  table.add_with(
      "f1_score",
      Schema<ClassOptions>("The harmonic mean of precision and recall.")
          .example("{average: macro}")
          .optional("average", &ClassOptions::average, kAverage)
          .optional("threshold", &ClassOptions::threshold, kThreshold,
                    between<std::optional<double>>(0.0, 1.0))
          .optional("name", &ClassOptions::name, kMetricName),
      [](const ClassOptions& options, const ConfigNode&) {
        return std::make_shared<const ClassMetric>(ClassMetric::Kind{"F1Score", &Counts::f1, false}, options);
      });
  table.add_with(
      "confusion_matrix",
      Schema<NoOptions>("How often rows of one class (a row of the matrix each) were taken for "
                        "another (its columns)."),
      [](const NoOptions&, const ConfigNode&) { return std::make_shared<const ConfusionMatrix>(); });
  table.add_with(
      "mean_iou",
      Schema<NoOptions>("Intersection over union of the rows of a class and those predicted to be, "
                        "the mean over the classes."),
      [](const NoOptions&, const ConfigNode&) { return std::make_shared<const MeanIou>(); });
}

}  // namespace dtrain
