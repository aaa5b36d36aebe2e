// Tests the metrics auc and precision_at_recall, which cover all thresholds: they count scores in buckets.
// The results are compared with exact values.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "head_harness.h"
#include "nn/loss.h"

namespace dtrain::test {

namespace {

/// Returns the fraction of pairs of a positive and a negative in which the positive has the higher score.
/// Pairs with equal scores count half.
double exact_auc(const std::vector<double>& scores, const std::vector<float>& labels) {
  double hits = 0, pairs = 0;
  for (size_t i = 0; i < scores.size(); ++i)
    for (size_t j = 0; j < scores.size(); ++j) {
      if (labels[i] < 0.5f || labels[j] > 0.5f) continue;
      ++pairs;
      hits += scores[i] > scores[j] ? 1 : scores[i] == scores[j] ? 0.5 : 0;
    }
  return hits / pairs;
}

/// Returns scikit-learn's average_precision_score. The scores must be distinct.
double exact_average_precision(const std::vector<double>& scores, const std::vector<float>& labels) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  double hits = 0, seen = 0, sum = 0;
  for (const size_t i : order) {
    ++seen;
    if (labels[i] < 0.5f) continue;
    sum += ++hits / seen;
  }
  return sum / hits;
}

struct Area {
  double value, uncertainty;
};

/// Computes a metric of one column of scores, for an output with this loss.
Area area_of(const std::string& yaml, const std::string& loss, Device& device, const Values& scores,
             const std::vector<float>& labels) {
  const auto metric = parse_kind<Metric>(yaml)->for_loss(*parse_kind<Loss>(loss));
  const auto rows = static_cast<int64_t>(scores.size());
  const TensorSpec column{"y", {1}};
  const auto own = device.typed(scores);
  const auto target = device.array(labels);
  const auto sums = device.array(std::vector<double>(static_cast<size_t>(metric->sums(column, column))));
  metric->run(device.ops(), {.prediction = own.data(),
                             .target = {target.data(), {rows, 1}},
                             .sums = sums.data(),
                             .rows = rows,
                             .columns = 1});
  const std::vector<double> counts = sums.read();
  return {metric->result(counts, static_cast<double>(rows), column).as_double(),
          metric->uncertainty(counts, column)};
}

}  // namespace

DEVICE_TEST_CASE("auc is within 0.005 of the exact value or gives its error bound") {
  std::mt19937 random(1);
  std::normal_distribution<double> normal;
  const std::string logits = "binary_crossentropy: {from_logits: true}";
  const auto check = [&](const std::string& loss, double center, double distance, double deviation,
                         bool certain) {
    CAPTURE(loss);
    CAPTURE(center);
    std::vector<float> labels;
    Values scores;
    for (int i = 0; i < 400; ++i) {
      labels.push_back(random() % 2 == 0 ? 0.0f : 1.0f);
      scores.push_back(static_cast<float>(center + distance * static_cast<double>(labels.back()) +
                                          deviation * normal(random)));
      if (loss == "binary_crossentropy") scores.back() = 1 / (1 + std::exp(-scores.back()));
    }
    scores = device.kept(scores);
    const std::vector<double> exact(scores.begin(), scores.end());
    const Area roc = area_of("auc", loss, device, scores, labels);
    CHECK(std::abs(roc.value - exact_auc(exact, labels)) <= (certain ? 0.005 : roc.uncertainty + 1e-9));
    if (!certain) CHECK(roc.uncertainty > 0.005);
    // Rounding to a 16-bit type can make scores equal, which exact_average_precision() does not support.
    if (std::set<float>(scores.begin(), scores.end()).size() < scores.size()) return;
    const Area pr = area_of("auc: {curve: PR}", loss, device, scores, labels);
    CHECK(std::abs(pr.value - exact_average_precision(exact, labels)) <=
          (certain ? 0.005 : pr.uncertainty + 1e-9));
  };
  check(logits, -0.002, 0.004, 0.0012, true);
  check(logits, -25, 2, 1, true);
  check(logits, 30, 10, 5, true);
  check(logits, -1, 2, 2, true);
  check(logits, 1e6, 3e5, 3e5, true);
  check("binary_crossentropy", -1, 2, 2, true);
  check("binary_crossentropy", -12, 3, 2, true);
  check("mean_squared_error", 0, 1, 0.6, true);  // scores are not probabilities
  check(logits, 5, 0.001, 0.001, false);
  check(logits, 5, 0.3, 0.3, true);
}

TEST_CASE("the uncertainty of precision_at_recall comes only from the order of scores in its buckets") {
  const std::vector<double> buckets{4, 1, 0, 1, 2, 3};
  const auto uncertainty = [&](const char* recall) {
    return parse_kind<Metric>(fmt::format("precision_at_recall: {{recall: {}, num_thresholds: 3}}", recall))
        ->uncertainty(buckets, {"y", {1}});
  };
  CHECK(uncertainty("0.5") == 0);
  CHECK(uncertainty("0.6") == doctest::Approx(1 - 5.0 / 6));
  CHECK(uncertainty("0.9") == doctest::Approx(6.0 / 7 - 6.0 / 11));
}

DEVICE_TEST_CASE("precision_at_recall is the best precision of all thresholds that reach the recall") {
  std::mt19937 random(3);
  std::normal_distribution<double> normal;
  std::vector<float> labels;
  Values logits;
  for (int i = 0; i < 300; ++i) {
    labels.push_back(random() % 3 == 0 ? 1.0f : 0.0f);
    logits.push_back(static_cast<float>(2 * static_cast<double>(labels.back()) - 1 + normal(random)));
  }
  logits = device.kept(logits);
  const auto exact = [&](double recall) {
    double best = 0;
    for (const float threshold : logits) {
      double hits = 0, predicted = 0, positives = 0;
      for (size_t i = 0; i < logits.size(); ++i) {
        const bool is_positive = labels[i] > 0.5f, is_predicted = logits[i] >= threshold;
        hits += is_positive && is_predicted ? 1 : 0;
        predicted += is_predicted ? 1 : 0;
        positives += is_positive ? 1 : 0;
      }
      if (hits / positives >= recall) best = std::max(best, hits / predicted);
    }
    return best;
  };
  for (const double recall : {0.2, 0.5, 0.9, 1.0}) {
    CAPTURE(recall);
    const Area area = area_of(fmt::format("precision_at_recall: {}", recall),
                              "binary_crossentropy: {from_logits: true}", device, logits, labels);
    CHECK(area.value <= exact(recall) + 1e-12);
    CHECK(area.value + area.uncertainty >= exact(recall) - 1e-12);
    CHECK(area.uncertainty < 0.01);
  }
}

DEVICE_TEST_CASE("auc of softmax logits distinguishes probabilities that round to 0 and 1") {
  const std::vector<int32_t> classes{0, 0, 1, 1};
  const Values scores{60, 0, 30, 0, 50, 0, 20, 0};
  const auto metric = parse_kind<Metric>("auc")->for_loss(
      *parse_kind<Loss>("sparse_categorical_crossentropy: {from_logits: true}"));
  const TensorSpec output{"y", {2}}, wanted{"t", {}, DType::int32};
  const auto own = device.typed(scores);
  const auto target = device.array(classes);
  const auto sums = device.array(std::vector<double>(static_cast<size_t>(metric->sums(output, wanted))));
  metric->run(device.ops(), {.prediction = own.data(),
                             .target = {target.data(), {4}, DType::int32},
                             .sums = sums.data(),
                             .rows = 4,
                             .columns = 2});
  CHECK(metric->result(sums.read(), 4, output).as_double() == 0.75);
}

}  // namespace dtrain::test
