// The area under the ROC curve or the precision-recall curve. It is computed from counts of targets in
// buckets of scores.
#include <algorithm>
#include <vector>

#include "nn/metrics/counted.h"
#include "nn/metrics/score_buckets.h"
#include "nn/metrics/table.h"

namespace dtrain {

enum class Curve { roc, pr };
template <>
inline const EnumNames<Curve> names_of<Curve> = {{Curve::roc, "ROC"}, {Curve::pr, "PR"}};

namespace {

struct AucOptions {
  std::optional<std::string> name;
  Curve curve = Curve::roc;
  std::optional<int64_t> num_thresholds;
  std::optional<bool> multi_label, from_logits;
};

bool has_area(const BucketCounts& counts, Curve curve) {
  return BucketCounts::sum(counts.positives) != 0 &&
         (curve == Curve::pr || BucketCounts::sum(counts.negatives) != 0);
}

/// Returns the area under the curve. Within a bucket, the ROC curve is a straight line. The precision-recall
/// curve treats all scores of a bucket as equal, like scikit-learn's average_precision_score.
double area(Curve curve, const BucketCounts& counts) {
  double area = 0;
  counts.for_each_bucket([&](double positives, double negatives, double hits, double misses) {
    if (curve == Curve::roc) {
      area += negatives * (hits + 0.5 * positives);
    } else if (positives > 0) {
      const double found = hits + positives;
      area += positives * found / (found + misses + negatives);
    }
  });
  const double all = BucketCounts::sum(counts.positives);
  return area / (curve == Curve::roc ? BucketCounts::sum(counts.negatives) * all : all);
}

/// Returns an upper bound on the error of area(). The order of the scores within a bucket is unknown. In the
/// extreme cases, all positives of a bucket have higher scores than its negatives, or all have lower scores.
double area_uncertainty(Curve curve, const BucketCounts& counts) {
  double more = 0, less = 0;
  counts.for_each_bucket([&](double positives, double negatives, double hits, double misses) {
    if (positives == 0 || negatives == 0) return;
    if (curve == Curve::roc) {
      more += 0.5 * positives * negatives;
      less = more;
    } else {
      const double found = hits + positives, first = hits + std::min(positives, 1.0);
      const double precision = found / (found + misses + negatives);
      more += positives * (found / (found + misses) - precision);
      less += positives * (precision - first / (first + misses + negatives));
    }
  });
  const double all = BucketCounts::sum(counts.positives);
  return std::max(more, less) / (curve == Curve::roc ? BucketCounts::sum(counts.negatives) * all : all);
}

class Auc : public ScoredMetric<Auc> {
 public:
  explicit Auc(const AucOptions& options) : options_(options) {}

  /// Returns the mean area of all curves. A class that is missing among the targets has no area and does not
  /// count.
  Json result(std::span<const double> sums, double, const TensorSpec& output) const override {
    return mean_of(area, sums, output);
  }
  double uncertainty(std::span<const double> sums, const TensorSpec& output) const override {
    const double mean = mean_of(area_uncertainty, sums, output);
    return mean == mean ? mean : 0;
  }
  Json curve(std::span<const double> sums, const TensorSpec& output) const override {
    const std::vector<BucketCounts> curves = curves_in(sums, output);
    if (curves.size() != 1 || !has_area(curves[0], Curve::roc)) return {};
    // Minimum distance between two points, which limits the curve to about 200 points.
    constexpr double kStep = 0.01;
    const double all_hits = BucketCounts::sum(curves[0].positives),
                 all_misses = BucketCounts::sum(curves[0].negatives);
    Json hits = Json::array(), misses = Json::array();
    double last = 0;
    curves[0].for_each_bucket([&](double positives, double negatives, double before, double missed) {
      const double found = before + positives, wrong = missed + negatives;
      const double way = found / all_hits + wrong / all_misses;
      if (way < last + kStep && (found < all_hits || wrong < all_misses)) return;
      last = way;
      hits.push(found);
      misses.push(wrong);
    });
    return Json::object().set("true_positives", std::move(hits)).set("false_positives", std::move(misses));
  }
  int sums_version() const override {
    return 2;
  }  // version 1 had buckets of equal width, for logits from -16 to 16

 protected:
  CountSpec spec(int64_t columns, DType target) const override {
    const bool sparse = target == DType::int32;
    return {.kind = CountSpec::Kind::buckets,
            .sparse = sparse,
            .scores = scores(columns, sparse),
            .buckets = buckets(columns),
            .by_column = options_.multi_label.value_or(sparse)};
  }

 private:
  int64_t buckets(int64_t columns) const {
    return options_.num_thresholds.value_or(default_buckets(columns));
  }
  std::vector<BucketCounts> curves_in(std::span<const double> sums, const TensorSpec& output) const {
    const auto n = static_cast<size_t>(buckets(output.shape.columns()));
    std::vector<BucketCounts> curves;
    for (size_t at = 0; at < sums.size(); at += 2 * n)
      curves.push_back({sums.subspan(at, n), sums.subspan(at + n, n)});
    return curves;
  }
  /// Returns the mean of the function `of` over all curves that have an area. Returns kNoValue if no curve
  /// has an area.
  double mean_of(double (*of)(Curve, const BucketCounts&), std::span<const double> sums,
                 const TensorSpec& output) const {
    double sum = 0, count = 0;
    for (const BucketCounts& counts : curves_in(sums, output)) {
      if (!has_area(counts, options_.curve)) continue;
      sum += of(options_.curve, counts);
      ++count;
    }
    return count == 0 ? kNoValue : sum / count;
  }

  /// Returns the meaning of the scores. If the user did not give `from_logits`, the scores have the same
  /// meaning as for the loss. If the scores are logits according to `from_logits` but not according to the
  /// loss, the dtype of the target determines their meaning: with class numbers, they are logits of a
  /// softmax, and with floats, logits of a sigmoid.
  CountSpec::Scores scores(int64_t columns, bool sparse) const {
    const CountSpec::Scores by_loss = reading().counted(columns);
    const bool logits = options_.from_logits.value_or(reading().is_logits(columns));
    if (!logits) return CountSpec::Scores::probabilities;
    if (reading().is_logits(columns)) return by_loss;
    return sparse && columns > 1 ? CountSpec::Scores::softmax_logits : CountSpec::Scores::sigmoid_logits;
  }

  AucOptions options_;
};

}  // namespace

void add_auc(Registry<Metric>& table) {
  table.add_with(
      "auc",
      Schema<AucOptions>("The area under the ROC curve or the precision-recall curve, over all thresholds. "
                         "For ROC, the area is the probability that a positive has a higher score than a "
                         "negative. For PR, it is the mean precision over all recalls.")
          .example("{curve: PR}")
          .optional("curve", &AucOptions::curve,
                    "The curve. `ROC` shows the recall at each false positive rate. `PR` shows the precision "
                    "at each recall.")
          .optional("num_thresholds", &AucOptions::num_thresholds, kNumThresholds,
                    between<std::optional<int64_t>>(2, 1048576))
          .optional("multi_label", &AucOptions::multi_label,
                    "If true, each column has its own curve, and the result is the mean area of the curves. "
                    "If false, there is one curve for all columns together. Default: true if the targets are "
                    "class numbers (each class against all others), and false otherwise.")
          .optional("from_logits", &AucOptions::from_logits,
                    "Whether the outputs are logits. If false, the outputs are probabilities. Default: as in "
                    "the loss of the output.")
          .optional("name", &AucOptions::name, kMetricName),
      [](const AucOptions& options, const ConfigNode&) { return std::make_shared<const Auc>(options); });
}

}  // namespace dtrain
