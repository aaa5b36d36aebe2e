// The area under a curve of all thresholds, from counts of targets by buckets of their scores.
#include "nn/metrics/counted.h"
#include "nn/metrics/table.h"

namespace dtrain {

enum class Curve { roc, pr };
template <>
inline const EnumNames<Curve> names_of<Curve> = {{Curve::roc, "ROC"}, {Curve::pr, "PR"}};

namespace {

struct AucOptions {
  std::optional<std::string> name;
  Curve curve = Curve::roc;
  int64_t num_thresholds = 4096;
  std::optional<bool> multi_label, from_logits;
};

/// From the highest score down. Within a bucket the curve of ROC is a straight line; that of precision and
/// recall is as scikit-learn's average_precision_score has it for scores that are the same.
double area(Curve curve, std::span<const double> negatives, std::span<const double> positives) {
  double all_negatives = 0, all_positives = 0;
  for (const double count : negatives) all_negatives += count;
  for (const double count : positives) all_positives += count;
  if (all_positives == 0 || (curve == Curve::roc && all_negatives == 0)) return kNoValue;
  double area = 0, hits = 0, misses = 0;
  for (size_t i = positives.size(); i-- > 0;) {
    if (curve == Curve::roc) {
      area += negatives[i] * (hits + 0.5 * positives[i]);
    } else if (positives[i] > 0) {
      const double found = hits + positives[i];
      area += positives[i] * found / (found + misses + negatives[i]);
    }
    hits += positives[i];
    misses += negatives[i];
  }
  return area / (curve == Curve::roc ? all_negatives * all_positives : all_positives);
}

class Auc : public ScoredMetric<Auc> {
 public:
  explicit Auc(const AucOptions& options) : options_(options) {}

  /// The mean over the classes that the targets have, where each has a curve.
  Json result(std::span<const double> sums, double, const TensorSpec&) const override {
    const auto n = static_cast<size_t>(options_.num_thresholds);
    double sum = 0, curves = 0;
    for (size_t at = 0; at < sums.size(); at += 2 * n) {
      const double value = area(options_.curve, sums.subspan(at, n), sums.subspan(at + n, n));
      if (value != value) continue;
      sum += value;
      ++curves;
    }
    return curves == 0 ? kNoValue : sum / curves;
  }

  Json keras_config(const TensorSpec& output, const TensorSpec& target) const override {
    if (target.dtype == DType::int32) return {};  // Keras's takes 0 and 1 for each class
    const CountSpec::Scores scores = spec(output.shape.columns(), target.dtype).scores;
    if (scores == CountSpec::Scores::softmax_logits) return {};  // Keras's has logits of a sigmoid only
    Json config = Json::object()
                      .set("num_thresholds", options_.num_thresholds)
                      .set("curve", Codec<Curve>::write(options_.curve).text())
                      .set("multi_label", options_.multi_label.value_or(false))
                      .set("from_logits", scores == CountSpec::Scores::sigmoid_logits);
    if (options_.multi_label.value_or(false)) config.set("num_labels", output.shape.columns());
    return keras_metric("AUC", std::move(config));
  }

 protected:
  CountSpec spec(int64_t columns, DType target) const override {
    const bool sparse = target == DType::int32;
    return {.kind = CountSpec::Kind::buckets,
            .sparse = sparse,
            .scores = scores(columns, sparse),
            .buckets = options_.num_thresholds,
            .by_column = options_.multi_label.value_or(sparse)};
  }

 private:
  /// As the loss takes them, unless the options say otherwise. Which logits they are the loss says, too, or
  /// else the targets do.
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
      Schema<AucOptions>(
          "The area under the curve of all thresholds: how often a positive has a higher score "
          "than a negative (ROC), or the mean precision over all recalls (PR).")
          .example("{curve: PR}")
          .optional("curve", &AucOptions::curve,
                    "ROC: recall by the false positives' rate; PR: precision by recall")
          .optional("num_thresholds", &AucOptions::num_thresholds,
                    "in how many buckets scores are counted, even in their logits",
                    between<int64_t>(2, 65536))
          .optional(
              "multi_label", &AucOptions::multi_label,
              "a curve for each column, and their mean; else one of all. True where not given for targets "
              "that are class numbers: each class against all others")
          .optional("from_logits", &AucOptions::from_logits,
                    "the output is logits, not probabilities; as the output's loss has it where not given")
          .optional("name", &AucOptions::name, kMetricName),
      [](const AucOptions& options, const ConfigNode&) { return std::make_shared<const Auc>(options); });
}

}  // namespace dtrain
