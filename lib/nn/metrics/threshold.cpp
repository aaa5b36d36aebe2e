#include "nn/threshold.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "config/yaml/scalar.h"
#include "nn/metrics/class_counts.h"
#include "ops/math/counts.h"

namespace dtrain {

namespace {

using Goal = ThresholdGoal::Kind;

constexpr int64_t kBuckets = 32768;

/// The row counts by which a threshold is rated. "Predicted" rows are predicted to be in the second class.
struct Predicted {
  // Predicted rows that are actually in the second class (hits) or in the first class (misses).
  double hits = 0, misses = 0;
  // All rows of the second class (positives) and of the first class (negatives).
  double positives = 0, negatives = 0;

  double precision() const { return ratio(hits, hits + misses); }
  double recall() const { return ratio(hits, positives); }
  double f1() const { return ratio(2 * hits, hits + misses + positives); }
  double balanced_accuracy() const { return (recall() + ratio(negatives - misses, negatives)) / 2; }
};

/// Rates a threshold for a goal. The better of two thresholds is the one with the greater rating. (Pairs are
/// compared by their first numbers, and then by their second numbers.)
std::pair<double, double> worth(const ThresholdGoal& goal, const Predicted& at) {
  switch (goal.kind) {
    case Goal::f1_score:
      return {at.f1(), 0};
    case Goal::balanced_accuracy:
      return {at.balanced_accuracy(), 0};
    // If no threshold reaches the requested precision, the threshold with the closest precision is best.
    case Goal::precision:
      return {std::min(at.precision(), goal.value), at.recall()};
    default:
      return {std::min(at.recall(), goal.value), at.precision()};
  }
}

/// Returns the smallest logit that is counted in a bucket.
double least_logit(int64_t bucket) {
  const CountSpec spec{.kind = CountSpec::Kind::buckets, .buckets = kBuckets};
  double below = -100, above = 100;
  constexpr int kSteps = 60;
  for (int i = 0; i < kSteps; ++i) {
    const double middle = (below + above) / 2;
    (math::bucket_of(spec, static_cast<float>(middle)) < bucket ? below : above) = middle;
  }
  return above;
}

/// Returns the probability at the midpoint between the buckets `low` and `high`. If `low` is -1, returns the
/// probability at the lower boundary of `high`.
double threshold_between(int64_t low, int64_t high) {
  const double end = least_logit(high);
  const double logit = low < 0 ? end : (least_logit(low + 1) + end) / 2;
  return 1 / (1 + std::exp(-logit));
}

class ThresholdMetric final : public ScoredMetric<ThresholdMetric> {
 public:
  explicit ThresholdMetric(const ThresholdGoal& goal) : goal_(goal) {}

  Json result(std::span<const double> sums, double, const TensorSpec&) const override {
    // The counts of the last column. If there are two columns, this is the column of the second class.
    const auto second = sums.last(2 * static_cast<size_t>(kBuckets));
    const auto negatives = second.first(kBuckets), positives = second.last(kBuckets);
    Predicted at;
    for (const double count : negatives) at.negatives += count;
    for (const double count : positives) at.positives += count;
    if (at.negatives == 0 || at.positives == 0) return kNoValue;
    std::pair<double, double> best{-1, -1};
    int64_t low = -1, high = -1, last = -1;  // the best threshold so far is between the buckets low and high
    bool is_best = false;
    for (int64_t bucket = kBuckets; bucket-- > 0;) {
      const double hits = positives[static_cast<size_t>(bucket)],
                   misses = negatives[static_cast<size_t>(bucket)];
      if (hits + misses == 0) continue;
      if (is_best) low = bucket;
      at.hits += hits;
      at.misses += misses;
      last = bucket;
      const auto found = worth(goal_, at);
      is_best = found > best;
      if (!is_best) continue;
      best = found;
      high = last;
      low = -1;
    }
    return threshold_between(low, high);
  }

 protected:
  CountSpec spec(int64_t columns, DType target) const override {
    const bool sparse = target == DType::int32;
    return {.kind = CountSpec::Kind::buckets,
            .sparse = sparse,
            .scores = reading().counted(columns),
            .buckets = kBuckets,
            .by_column = sparse};
  }

 private:
  ThresholdGoal goal_;
};

class ThresholdReport final : public ScoredMetric<ThresholdReport> {
 public:
  explicit ThresholdReport(double threshold) : threshold_(threshold) {}

  bool is_number(const TensorSpec&) const override { return false; }
  Json result(std::span<const double> sums, double rows, const TensorSpec&) const override {
    const ClassCounts counts = counts_of(sums, sums.size() / 3 - 1);
    const double wrong = counts.predicted + counts.actual - 2 * counts.true_positives;
    return Json::object()
        .set("threshold", threshold_)
        .set("accuracy", ratio(rows - wrong, rows))
        .set("precision", counts.precision())
        .set("recall", counts.recall())
        .set("f1_score", counts.f1());
  }

 protected:
  CountSpec spec(int64_t columns, DType target) const override {
    return {.kind = CountSpec::Kind::classes,
            .sparse = target == DType::int32,
            .by_threshold = true,
            .scores = reading().counted(columns),
            .threshold = reading().threshold(threshold_, columns)};
  }

 private:
  double threshold_;
};

constexpr std::string_view kExpected =
    "a number between 0 and 1, or one of {maximize: f1_score}, {maximize: balanced_accuracy}, {precision: "
    "0.9} "
    "and {recall: 0.9}";

std::optional<double> share_of(const ConfigNode& node) {
  double value = 0;
  if (!node.is_scalar() || parse_real(node.text(), value) != std::errc() || !(value > 0 && value < 1))
    return std::nullopt;
  return value;
}

}  // namespace

bool Codec<ThresholdGoal>::parse(const ConfigNode& node, const std::string& where, ThresholdGoal& out,
                                 Diagnostics& diagnostics) {
  if (const auto value = share_of(node)) {
    out = {Goal::fixed, *value};
    return true;
  }
  if (!node.is_mapping() || node.entries().size() != 1)
    return report_unexpected(node, where, kExpected, diagnostics);
  const auto& [key, value] = node.entries().front();
  const std::vector<std::string> keys{"maximize", "precision", "recall"};
  if (std::find(keys.begin(), keys.end(), key.text()) == keys.end()) {
    diagnostics.error(
        key, fmt::format("{}: unknown key '{}'{}", where, key.text(), suggestion_or_list(key.text(), keys)));
    return false;
  }
  if (key.text() == "maximize") {
    const std::vector<std::string> scores{"f1_score", "balanced_accuracy"};
    if (!value.is_scalar() || std::find(scores.begin(), scores.end(), value.text()) == scores.end())
      return report_unexpected(value, where + "'s maximize", "f1_score or balanced_accuracy", diagnostics);
    out = {value.text() == "f1_score" ? Goal::f1_score : Goal::balanced_accuracy, 0};
    return true;
  }
  const auto share = share_of(value);
  if (!share)
    return report_unexpected(value, fmt::format("{}'s {}", where, key.text()), "a number between 0 and 1",
                             diagnostics);
  out = {key.text() == "precision" ? Goal::precision : Goal::recall, *share};
  return true;
}

ConfigNode Codec<ThresholdGoal>::write(const ThresholdGoal& goal) {
  const auto one = [](const char* key, ConfigNode value) {
    return ConfigNode::mapping({ConfigNode::entry(key, std::move(value))});
  };
  const ConfigNode value = Codec<double>::write(goal.value);
  switch (goal.kind) {
    case Goal::fixed:
      return value;
    case Goal::f1_score:
      return one("maximize", ConfigNode::scalar("f1_score"));
    case Goal::balanced_accuracy:
      return one("maximize", ConfigNode::scalar("balanced_accuracy"));
    case Goal::precision:
      return one("precision", value);
    case Goal::recall:
      return one("recall", value);
  }
  return value;
}

Json Codec<ThresholdGoal>::schema() {
  const Json share = json_type("number").set("exclusiveMinimum", 0).set("exclusiveMaximum", 1);
  const auto one = [](const char* key, const Json& value) {
    return json_type("object")
        .set("properties", Json::object().set(key, value))
        .set("required", Json::array().push(key))
        .set("additionalProperties", false);
  };
  const Json score = Json::object().set("enum", Json::array().push("f1_score").push("balanced_accuracy"));
  return Json::object().set("anyOf", Json::array()
                                         .push(share)
                                         .push(one("maximize", score))
                                         .push(one("precision", share))
                                         .push(one("recall", share)));
}

bool tells_two_classes(const Loss& loss, const TensorSpec& output, const TensorSpec& target) {
  if (!loss.tells_classes() || loss.takes() == Scores::any || output.shape.rank() != 1) return false;
  return output.shape.back() == (target.dtype == DType::int32 ? 2 : 1);
}

std::shared_ptr<const Metric> make_threshold_metric(const ThresholdGoal& goal) {
  return std::make_shared<const ThresholdMetric>(goal);
}

std::shared_ptr<const Metric> make_threshold_report(double threshold) {
  return std::make_shared<const ThresholdReport>(threshold);
}

}  // namespace dtrain
