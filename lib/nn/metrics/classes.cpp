// Precision, recall, F1 score and the Dice coefficient.
#include <vector>

#include <fmt/format.h>

#include "nn/metrics/class_counts.h"
#include "nn/metrics/table.h"

namespace dtrain {
namespace {

struct ClassOptions {
  std::optional<std::string> name;
  Average average = Average::none;
  std::optional<double> threshold;
  bool include_background = true;  // if false, class 0 is not included in the averages
};

/// Precision, recall, F1 score or Dice coefficient. The threshold applies if each column of the output is a
/// separate yes/no prediction.
class ClassMetric : public ScoredMetric<ClassMetric> {
 public:
  /// The properties in which these metrics differ.
  struct Kind {
    std::string threshold_option;
    ScoreOfCounts score;
    /// Applies to targets of floats. If true, each column is a yes/no prediction for every loss. If false,
    /// this depends on the loss and on the option `threshold`.
    bool by_threshold;
  };
  ClassMetric(Kind kind, const ClassOptions& options) : kind_(std::move(kind)), options_(options) {}

  bool check(const TensorSpec& output, const TensorSpec& target,
             const ReportError& report_error) const override {
    if (!CountedMetric::check(output, target, report_error)) return false;
    if (!options_.include_background && output.shape.columns() == 1) {
      report_error(fmt::format(
          "'include_background: false' requires an output with one column for each class, in which the first "
          "column is the background; but '{}' has a single column and no background",
          output.name));
      return false;
    }
    if (!options_.threshold || spec(output.shape.columns(), target.dtype).by_threshold) return true;
    report_error(
        fmt::format("'{}' applies only to yes/no predictions (one for each row, or one for each column), but "
                    "'{}' predicts exactly one of {} classes; remove this option",
                    kind_.threshold_option, output.name, output.shape.columns()));
    return false;
  }
  bool is_number(const TensorSpec& output) const override {
    return options_.average != Average::none || output.shape.columns() - first_class() == 1;
  }
  Json result(std::span<const double> sums, double, const TensorSpec&) const override {
    const size_t first = static_cast<size_t>(first_class()), classes = sums.size() / 3;
    std::vector<double> counted;
    for (size_t begin = 0; begin < sums.size(); begin += classes) {
      const auto counts = sums.subspan(begin + first, classes - first);
      counted.insert(counted.end(), counts.begin(), counts.end());
    }
    return average_of(counted, kind_.score, options_.average);
  }

 protected:
  CountSpec spec(int64_t columns, DType target) const override {
    const bool sparse = target == DType::int32;
    const bool yes_or_no = kind_.by_threshold || options_.threshold || reading().of_columns;
    return {.kind = CountSpec::Kind::classes,
            .sparse = sparse,
            .by_threshold = columns == 1 || (!sparse && yes_or_no),
            .scores = reading().counted(columns),
            .threshold = reading().threshold(options_.threshold.value_or(0.5), columns)};
  }

 private:
  int64_t first_class() const { return options_.include_background ? 0 : 1; }

  Kind kind_;
  ClassOptions options_;
};

struct PrecisionOptions {
  std::optional<std::string> name;
  Average average = Average::micro;
  std::optional<double> thresholds;
};

struct DiceScoreOptions {
  std::optional<std::string> name;
  Average average = Average::macro;
  std::optional<double> threshold;
  bool include_background = true;
};

}  // namespace

ClassCounts counts_of(std::span<const double> sums, size_t c) {
  const size_t classes = sums.size() / 3;
  return {sums[c], sums[classes + c], sums[2 * classes + c]};
}

Json average_of(std::span<const double> sums, ScoreOfCounts score, Average average) {
  const size_t classes = sums.size() / 3;
  ClassCounts all;
  Json each = Json::array();
  double sum = 0, weights = 0;
  for (size_t c = 0; c < classes; ++c) {
    const ClassCounts counts = counts_of(sums, c);
    all = {all.true_positives + counts.true_positives, all.predicted + counts.predicted,
           all.actual + counts.actual};
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

void add_class_metrics(Registry<Metric>& table) {
  constexpr auto kThreshold =
      "Threshold of yes/no predictions: a probability above the threshold means yes. It applies to an output "
      "with one column, and to columns that are separate yes/no predictions. If the loss of the output takes "
      "logits, the outputs are first converted to probabilities. Default: 0.5.";
  constexpr auto kAverage =
      "Averaging over the classes. `micro` computes the metric from the total counts of all classes. `macro` "
      "is the mean over all classes that occur in the predictions or in the targets. `weighted` is the mean "
      "weighted by the number of rows of each class. `none` gives one number per class.";
  const auto precision_like = [&](const std::string& name, ScoreOfCounts score, const std::string& doc) {
    table.add_with(name,
                   Schema<PrecisionOptions>(doc)
                       .example("{average: macro}")
                       .optional("average", &PrecisionOptions::average, kAverage)
                       .optional("thresholds", &PrecisionOptions::thresholds, kThreshold,
                                 between<std::optional<double>>(0.0, 1.0))
                       .optional("name", &PrecisionOptions::name, kMetricName),
                   [=](const PrecisionOptions& options, const ConfigNode&) {
                     return std::make_shared<const ClassMetric>(
                         ClassMetric::Kind{"thresholds", score, true},
                         ClassOptions{options.name, options.average, options.thresholds});
                   });
  };
  precision_like("precision", &ClassCounts::precision,
                 "Precision: the fraction of the predictions of a class that are correct.");
  precision_like("recall", &ClassCounts::recall,
                 "Recall: the fraction of the rows of a class that are predicted as this class.");
  table.add_with("f1_score",
                 Schema<ClassOptions>("F1 score: the harmonic mean of precision and recall.")
                     .example("{average: macro}")
                     .optional("average", &ClassOptions::average, kAverage)
                     .optional("threshold", &ClassOptions::threshold, kThreshold,
                               between<std::optional<double>>(0.0, 1.0))
                     .optional("name", &ClassOptions::name, kMetricName),
                 [](const ClassOptions& options, const ConfigNode&) {
                   return std::make_shared<const ClassMetric>(
                       ClassMetric::Kind{"threshold", &ClassCounts::f1, false}, options);
                 });
  table.add_with(
      "dice",
      Schema<DiceScoreOptions>("The Dice coefficient of each class, 2 TP / (2 TP + FP + FN). TP, FP and FN "
                               "are the numbers of true positives, false positives and false negatives among "
                               "the rows (pixels) of the whole data set.")
          .example("{include_background: false}")
          .optional("average", &DiceScoreOptions::average, kAverage)
          .optional("threshold", &DiceScoreOptions::threshold, kThreshold,
                    between<std::optional<double>>(0.0, 1.0))
          .optional("include_background", &DiceScoreOptions::include_background,
                    "Whether class 0, the background, counts as one of the classes. An output with one "
                    "column has no background.")
          .optional("name", &DiceScoreOptions::name, kMetricName),
      [](const DiceScoreOptions& options, const ConfigNode&) {
        return std::make_shared<const ClassMetric>(
            ClassMetric::Kind{"threshold", &ClassCounts::f1, false},
            ClassOptions{options.name, options.average, options.threshold, options.include_background});
      });
}

}  // namespace dtrain
