#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "head_harness.h"
#include "nn/loss.h"

namespace dtrain::test {

DEVICE_TEST_CASE("metrics match their formulas") {
  Bench bench(device);
  const auto total = [&](const std::string& yaml, const View& target, const Values& prediction) {
    const auto own = device.typed(prediction);
    const auto sum = device.array(std::vector<double>{10});
    parse_kind<Metric>(yaml)->run(
        device.ops(),
        {.prediction = own.data(), .target = target, .sums = sum.data(), .rows = kRows, .columns = kColumns});
    return sum.read()[0] - 10;
  };
  // The classes are 2 0 1 1. The largest columns of the rows are 2 0 1 2; on a tie, column 0 ranks before
  // column 1.
  CHECK(total("sparse_categorical_accuracy", bench.sparse(), probabilities(bench)) == 3);
  CHECK(total("accuracy", bench.sparse(), probabilities(bench)) == 3);
  CHECK(total("sparse_top_k_categorical_accuracy: {k: 2}", bench.sparse(), probabilities(bench)) == 3);
  CHECK(total("top_k: {k: 2}", bench.sparse(), probabilities(bench)) == 3);
  CHECK(total("top_k: {k: 3}", bench.sparse(), probabilities(bench)) == 4);
  bench.dense = {0, 0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 1};
  CHECK(total("categorical_accuracy", bench.floats(), probabilities(bench)) == 3);
  CHECK(total("accuracy", bench.floats(), probabilities(bench)) == 3);
  CHECK(total("top_k_categorical_accuracy: {k: 2}", bench.floats(), probabilities(bench)) == 4);
  CHECK(total("top_k: {k: 2}", bench.floats(), probabilities(bench)) == 4);
  // Columns above 0.5 by row: none; 0; 1; none. Above 0.35: 2; 0; 1; 2.
  CHECK(total("binary_accuracy", bench.floats(), probabilities(bench)) ==
        doctest::Approx(2.0 / 3 + 1 + 1.0 / 3 + 2.0 / 3));
  CHECK(total("binary_accuracy: {threshold: 0.35}", bench.floats(), probabilities(bench)) ==
        doctest::Approx(1 + 1 + 1.0 / 3 + 1));
  CHECK(total("mean_absolute_error", bench.floats(), probabilities(bench)) ==
        doctest::Approx((1.0 + 0.6 + 1.9 + 1.2) / 3).epsilon(device.tolerance(1e-5)));
}

DEVICE_TEST_CASE("accuracy of one column is binary accuracy") {
  Bench bench(device);
  bench.dense = {0, 1, 1, 0};
  const auto prediction = device.typed(Values{0.4f, 0.6f, 0.3f, 0.1f});
  const auto sum = device.array(std::vector<double>{0});
  View target = bench.floats();
  target.shape = {kRows, 1};
  parse_kind<Metric>("accuracy")
      ->run(device.ops(), {.prediction = prediction.data(),
                           .target = target,
                           .sums = sum.data(),
                           .rows = kRows,
                           .columns = 1});
  CHECK(sum.read()[0] == 3);
}

namespace {

/// Returns a metric's result for these sums and this weight, for an output of `columns` columns.
Json result_of(const std::string& yaml, const std::vector<double>& sums, double weight, int64_t columns) {
  return parse_kind<Metric>(yaml)->result(sums, weight, {"y", {columns}});
}

}  // namespace

TEST_CASE("metrics are computed from sums of counts") {
  // Correct, predicted and actual counts by class. The last class is neither predicted nor actual.
  const std::vector<double> classes{3, 0, 2, 0, 4, 1, 2, 0, 3, 1, 3, 0};
  CHECK(result_of("precision", classes, 7, 4).as_double() == doctest::Approx(5.0 / 7));
  CHECK(result_of("precision: {average: none}", classes, 7, 4).dump() == "[0.75, 0.0, 1.0, 0.0]");
  CHECK(result_of("recall: {average: macro}", classes, 7, 4).as_double() ==
        doctest::Approx((1 + 0 + 2.0 / 3) / 3));
  CHECK(result_of("recall: {average: weighted}", classes, 7, 4).as_double() == doctest::Approx(5.0 / 7));
  CHECK(result_of("f1_score: {average: micro}", classes, 7, 4).as_double() == doctest::Approx(5.0 / 7));
  CHECK(result_of("f1_score", {3, 4, 6}, 9, 1).as_double() == doctest::Approx(0.6));
  CHECK(result_of("dice", classes, 7, 4).as_double() ==
        doctest::Approx((2 * 3.0 / (4 + 3) + 0 + 2 * 2.0 / (2 + 3)) / 3));
  CHECK(result_of("dice: {include_background: false}", classes, 7, 4).as_double() ==
        doctest::Approx((0 + 2 * 2.0 / (2 + 3)) / 2));
  CHECK(result_of("dice: {include_background: false, average: micro}", classes, 7, 4).as_double() ==
        doctest::Approx(2 * 2.0 / (3 + 4)));
  CHECK(result_of("dice: {include_background: false, average: none}", classes, 7, 4).dump() ==
        "[0.0, 0.8, 0.0]");
  CHECK(result_of("dice", {3, 4, 6}, 9, 1).as_double() == doctest::Approx(0.6));
  CHECK(result_of("confusion_matrix", {1, 2, 3, 4.5}, 9, 2).dump() == "[[1, 2], [3, 4.5]]");
  CHECK(result_of("mean_iou", {1, 2, 0, 4}, 7, 2).as_double() == doctest::Approx((1.0 / 3 + 4.0 / 6) / 2));
  CHECK(result_of("perplexity", {3 * std::log(2.0)}, 3, 4).as_double() == doctest::Approx(2));
  const std::vector<double> buckets{4, 1, 0, 1, 2, 3};  // negatives, then positives
  CHECK(result_of("auc: {num_thresholds: 3}", buckets, 11, 1).as_double() ==
        doctest::Approx((4 * 5.5 + 1 * 4) / 30));
  CHECK(result_of("auc: {num_thresholds: 3, curve: PR}", buckets, 11, 1).as_double() ==
        doctest::Approx((3 * 1 + 2 * 5.0 / 6 + 1 * 6.0 / 11) / 6));
  CHECK(std::isnan(result_of("auc: {num_thresholds: 3}", {0, 0, 0, 1, 2, 3}, 6, 1).as_double()));
  for (const auto& [recall, precision] : std::map<const char*, double>{
           {"0.5", 1}, {"0.51", 5.0 / 6}, {"0.84", 6.0 / 11}, {"0", 1}, {"1", 6.0 / 11}})
    CHECK(result_of(fmt::format("precision_at_recall: {{recall: {}, num_thresholds: 3}}", recall), buckets,
                    11, 1)
              .as_double() == doctest::Approx(precision));
  CHECK(result_of("precision_at_recall: {recall: 0, num_thresholds: 2}", {1, 2, 0, 0}, 3, 1).as_double() ==
        0);
  // Of two columns, the second.
  CHECK(result_of("precision_at_recall: {recall: 0.5, num_thresholds: 2, class_id: 1}",
                  {1, 2, 3, 4, 2, 3, 4, 2}, 9, 2)
            .as_double() == doctest::Approx(6.0 / 11));
  CHECK(result_of("r2_score", {6, 14, 0.5, 3}, 3, 1).as_double() == doctest::Approx(0.75));
  CHECK(result_of("r2_score: {class_aggregation: none}", {6, 6, 14, 12, 0.5, 1, 3}, 3, 2).dump() ==
        "[0.75, 0.0]");
  CHECK(result_of("root_mean_squared_error", {18}, 2, 1).as_double() == 3);
  CHECK(result_of("cosine_similarity", {-1}, 2, 3).as_double() == 0.5);
  CHECK(!parse_kind<Metric>("f1_score")->is_number({"y", {4}}));
  CHECK(parse_kind<Metric>("f1_score")->is_number({"y", {1}}));
  CHECK(parse_kind<Metric>("f1_score: {average: macro}")->is_number({"y", {4}}));
  CHECK(parse_kind<Metric>("dice")->is_number({"y", {4}}));
  CHECK(!parse_kind<Metric>("dice: {average: none, include_background: false}")->is_number({"y", {3}}));
  CHECK(parse_kind<Metric>("dice: {average: none, include_background: false}")->is_number({"y", {2}}));
}

TEST_CASE("cohen_kappa and matthews_correlation are scikit-learn's") {
  const auto is = [](const std::string& metric, const std::vector<double>& matrix, double expected) {
    CAPTURE(metric);
    const auto n = static_cast<int64_t>(std::lround(std::sqrt(matrix.size())));
    CHECK(result_of(metric, matrix, 1, n).as_double() == doctest::Approx(expected));
  };
  // Rows 50 of 85 agree; independent predictions would in (25 * 35 + 60 * 50) / 85.
  const std::vector<double> two{20, 5, 15, 45};
  is("cohen_kappa", two, (65.0 / 85 - 3875.0 / 7225) / (1 - 3875.0 / 7225));
  is("cohen_kappa: {weightage: linear}", two, (65.0 / 85 - 3875.0 / 7225) / (1 - 3875.0 / 7225));
  is("matthews_correlation", two, (45.0 * 20 - 15.0 * 5) / std::sqrt(60.0 * 50 * 35 * 25));
  // An output of one column has two classes, too.
  CHECK(result_of("matthews_correlation", two, 1, 1).as_double() ==
        doctest::Approx((45.0 * 20 - 15.0 * 5) / std::sqrt(60.0 * 50 * 35 * 25)));
  // Targets by class: 4, 3, 3; predictions: 4, 2, 4. Independent predictions would have, in tenths, the
  // matrix 16 8 16, 12 6 12, 12 6 12.
  const std::vector<double> three{3, 0, 1, 1, 2, 0, 0, 0, 3};
  is("cohen_kappa", three, 1 - 2 / ((8 + 16 + 12 + 12 + 12 + 6) / 10.0));
  is("cohen_kappa: {weightage: linear}", three, 1 - (2 + 1) / ((8 + 2 * 16 + 12 + 12 + 2 * 12 + 6) / 10.0));
  is("cohen_kappa: {weightage: quadratic}", three,
     1 - (4 + 1) / ((8 + 4 * 16 + 12 + 12 + 4 * 12 + 6) / 10.0));
  is("matthews_correlation", three,
     (8 * 10 - (16 + 6 + 12)) / std::sqrt((100.0 - (16 + 9 + 9)) * (100.0 - (16 + 4 + 16))));
  // All targets and predictions are of one class; all predictions are.
  CHECK(std::isnan(result_of("cohen_kappa", {3, 0, 0, 0}, 3, 2).as_double()));
  is("matthews_correlation", {3, 0, 0, 0}, 0);
  is("cohen_kappa", {3, 0, 2, 0}, 0);
  is("matthews_correlation", {3, 0, 2, 0}, 0);
  is("cohen_kappa", {0, 3, 3, 0}, -1);
  is("matthews_correlation", {0, 3, 3, 0}, -1);
}

DEVICE_TEST_CASE(
    "perplexity is the exponential of the mean cross-entropy, as the output's loss reads scores") {
  Bench bench(device);
  const auto of = [&](const std::string& yaml, const char* loss, const Values& scores) {
    const std::shared_ptr<const Metric> parsed = parse_kind<Metric>(yaml).value;
    const auto for_loss = parsed->for_loss(*parse_kind<Loss>(loss));
    const Metric& metric = for_loss ? *for_loss : *parsed;
    const auto own = device.typed(scores);
    const auto sums = device.array(std::vector<double>{0});
    metric.run(device.ops(), {.prediction = own.data(),
                              .target = bench.sparse(),
                              .sums = sums.data(),
                              .rows = kRows,
                              .columns = kColumns});
    return metric.result(sums.read(), kRows, {"y", {kColumns}}).as_double();
  };
  // The classes are 2 0 1 1. Their probabilities are 1/2, 1/4, 1/8 and 1/2: their geometric mean is 2^-7/4.
  const Values p{0.25f, 0.25f, 0.5f, 0.25f, 0.5f, 0.25f, 0.75f, 0.125f, 0.125f, 0.25f, 0.5f, 0.25f};
  Values logits = p;
  for (float& x : logits) x = std::log(x);
  const double expected = std::pow(2, 7.0 / 4), tolerance = device.tolerance(1e-5);
  const char* from_logits = "sparse_categorical_crossentropy: {from_logits: true}";
  CHECK(of("perplexity", "sparse_categorical_crossentropy", p) ==
        doctest::Approx(expected).epsilon(tolerance));
  CHECK(of("perplexity", from_logits, device.kept(logits)) == doctest::Approx(expected).epsilon(tolerance));
  CHECK(of("perplexity: {from_logits: false}", from_logits, p) ==
        doctest::Approx(expected).epsilon(tolerance));
}

DEVICE_TEST_CASE("a threshold applies to probabilities, also if the loss takes logits") {
  Bench bench(device);
  bench.dense = {0, 1, 1, 0};
  View target = bench.floats();
  target.shape = {kRows, 1};
  const auto count = [&](const Metric& metric, const Values& scores) {
    const auto own = device.typed(scores);
    const auto sums = device.array(std::vector<double>(3));
    metric.run(
        device.ops(),
        {.prediction = own.data(), .target = target, .sums = sums.data(), .rows = kRows, .columns = 1});
    return sums.read();
  };
  const auto metric = parse_kind<Metric>("f1_score: {threshold: 0.75}");
  const auto of = [&](const char* loss) { return metric->for_loss(*parse_kind<Loss>(loss)); };
  CHECK(count(*metric, {0.5f, 0.875f, 0.625f, 0.125f}) == std::vector<double>{1, 1, 2});
  CHECK(count(*of("binary_crossentropy"), {0.5f, 0.875f, 0.625f, 0.125f}) == std::vector<double>{1, 1, 2});
  // The logit of 0.75 is 1.0986.
  CHECK(count(*of("binary_crossentropy: {from_logits: true}"), {0.875f, 1.25f, 1, -2}) ==
        std::vector<double>{1, 1, 2});
}

namespace {

/// Returns the metric over the bench's dense targets, for an output with this loss.
double result_with(const std::string& yaml, const std::string& loss, Bench& bench, const Values& scores) {
  const std::shared_ptr<const Metric> parsed = parse_kind<Metric>(yaml).value;
  const auto for_loss = parsed->for_loss(*parse_kind<Loss>(loss));
  const Metric& metric = for_loss ? *for_loss : *parsed;
  const auto columns = static_cast<int64_t>(scores.size()) / kRows;
  const TensorSpec output{"y", {columns}}, wanted{"t", {columns}};
  const auto own = bench.device.typed(scores);
  const auto sums = bench.device.array(std::vector<double>(static_cast<size_t>(metric.sums(output, wanted))));
  View target = bench.floats();
  target.shape = {kRows, columns};
  metric.run(
      bench.device.ops(),
      {.prediction = own.data(), .target = target, .sums = sums.data(), .rows = kRows, .columns = columns});
  return metric.result(sums.read(), kRows, output).as_double();
}

}  // namespace

DEVICE_TEST_CASE("metrics are the same for probabilities and for their logits") {
  Bench bench(device);
  const auto same = [&](const std::vector<const char*>& metrics, const std::string& loss, const Values& p,
                        const Values& logits, double tolerance) {
    for (const char* metric : metrics) {
      CAPTURE(metric);
      CHECK(result_with(metric, loss + ": {from_logits: true}", bench, logits) ==
            doctest::Approx(result_with(metric, loss, bench, p)).epsilon(tolerance));
    }
  };
  // The softmaxes are 0.665 0.245 0.090, 0.506 0.307 0.187, 0.422 0.422 0.155 and 0.155 0.422 0.422. With a
  // sigmoid of each logit, other columns would be above 0.5.
  bench.dense = {1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 1};
  const Values softmaxes{0.6652f, 0.2447f, 0.09f,   0.5065f, 0.3072f, 0.1863f,
                         0.4223f, 0.4223f, 0.1554f, 0.1554f, 0.4223f, 0.4223f};
  const Values logits{2, 1, 0, 0.5f, 0, -0.5f, 1, 1, 0, -1, 0, 0};
  same({"precision", "recall: {average: macro}", "precision: {thresholds: 0.4}", "f1_score: {average: macro}",
        "f1_score: {average: macro, threshold: 0.3}", "binary_accuracy", "binary_accuracy: {threshold: 0.3}",
        "accuracy", "auc", "auc: {curve: PR}", "mean_iou", "dice", "cohen_kappa", "matthews_correlation",
        "precision_at_recall: 0.5", "precision_at_recall: {recall: 1, class_id: 2}"},
       "categorical_crossentropy", device.kept(softmaxes), logits, device.tolerance(1e-3));
  // The sigmoids are 0.62 0.38, 0.73 0.88, 0.27 0.55 and 0.44 0.57.
  bench.dense = {1, 0, 1, 0, 0, 1, 1, 0};
  const Values sigmoids{0.6225f, 0.3775f, 0.7311f, 0.8808f, 0.2689f, 0.5469f, 0.4378f, 0.5622f};
  const Values each{0.5f, -0.5f, 1, 2, -1, 0.1875f, -0.25f, 0.25f};
  same({"precision", "recall", "f1_score: {average: macro}", "binary_accuracy",
        "binary_accuracy: {threshold: 0.56}", "auc", "precision_at_recall: 0.8"},
       "binary_crossentropy", device.kept(sigmoids), each, device.tolerance(1e-3));
  // For an output of one column, `accuracy` is binary accuracy.
  bench.dense = {1, 1, 0, 0};
  same({"accuracy", "binary_accuracy", "f1_score"}, "binary_crossentropy",
       device.kept({0.5744f, 0.4256f, 0.5622f, 0.25f}), {0.3f, -0.3f, 0.25f, -1.1f}, 1e-6);
  CHECK(result_with("accuracy", "binary_crossentropy: {from_logits: true}", bench,
                    {0.3f, -0.3f, 0.25f, -1.1f}) == 0.5);
}

namespace {

/// Returns how often a positive has a higher score than a negative; equal scores count half.
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

/// Returns scikit-learn's average_precision_score, for distinct scores.
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
  const auto check = [&](const std::string& loss, double centre, double distance, double deviation,
                         bool certain) {
    CAPTURE(loss);
    CAPTURE(centre);
    std::vector<float> labels;
    Values scores;
    for (int i = 0; i < 400; ++i) {
      labels.push_back(random() % 2 == 0 ? 0.0f : 1.0f);
      scores.push_back(static_cast<float>(centre + distance * static_cast<double>(labels.back()) +
                                          deviation * normal(random)));
      if (loss == "binary_crossentropy") scores.back() = 1 / (1 + std::exp(-scores.back()));
    }
    scores = device.kept(scores);
    const std::vector<double> exact(scores.begin(), scores.end());
    const Area roc = area_of("auc", loss, device, scores, labels);
    CHECK(std::abs(roc.value - exact_auc(exact, labels)) <= (certain ? 0.005 : roc.uncertainty + 1e-9));
    if (!certain) CHECK(roc.uncertainty > 0.005);
    if (std::set<float>(scores.begin(), scores.end()).size() < scores.size()) return;  // ties in 16-bit types
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

TEST_CASE("precision_at_recall is not more uncertain than the order of scores in its buckets") {
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

DEVICE_TEST_CASE("f1_score uses a threshold for binary columns and the largest value otherwise") {
  Bench bench(device);
  bench.dense = {1, 1, 0, 1, 1, 0, 0, 0};
  const Values scores{0.75f, 0.875f, 0.25f, 0.375f, 0.625f, 0.125f, 0.125f, 0.25f};
  // By class: 2 correct of 2 predicted and 2 actual; 1 correct of 1 predicted and 2 actual.
  CHECK(result_with("f1_score: {average: macro}", "binary_crossentropy", bench, scores) ==
        doctest::Approx((1 + 2.0 / 3) / 2));
  // The largest columns are 1 1 0 1; those of the targets 0 1 0 0.
  for (const char* loss : {"categorical_crossentropy", "mean_squared_error"})
    CHECK(result_with("f1_score: {average: macro}", loss, bench, scores) ==
          doctest::Approx((2 * 1.0 / (1 + 3) + 2 * 1.0 / (3 + 1)) / 2));
}

TEST_CASE("every metric knows whether larger is better") {
  for (const char* larger :
       {"accuracy", "binary_accuracy", "sparse_categorical_accuracy", "top_k", "precision: {name: acc_loss}",
        "recall: {name: misses}", "f1_score", "auc: {name: roc}", "mean_iou", "dice", "r2_score",
        "cosine_similarity", "cohen_kappa", "matthews_correlation", "precision_at_recall: 0.5"})
    CHECK(parse_kind<Metric>(larger)->larger_is_better());
  for (const char* smaller :
       {"mean_absolute_error", "mean_squared_error", "root_mean_squared_error", "log_cosh",
        "binary_crossentropy", "hinge", "poisson", "kl_divergence", "perplexity"})
    CHECK(!parse_kind<Metric>(smaller)->larger_is_better());
}

TEST_CASE("r2_score of constant columns is scikit-learn's") {
  // The targets of each column are 2 2 2. The first column is predicted exactly, the second is always off by
  // 1.
  const std::vector<double> sums{6, 6, 12, 12, 0, 3, 3};
  CHECK(result_of("r2_score: {class_aggregation: variance_weighted_average}", sums, 3, 2).as_double() == 0.5);
  CHECK(result_of("r2_score", sums, 3, 2).as_double() == 0.5);
}

TEST_CASE("metrics report an unsuitable output or target") {
  const auto errors = [](const std::string& yaml, const TensorSpec& output, const TensorSpec& target) {
    std::string all;
    const bool good =
        parse_kind<Metric>(yaml)->check(output, target, [&](const std::string& m) { all += m; });
    CHECK(good == all.empty());
    return all;
  };
  const TensorSpec output{"y", {4}}, sparse{"t", {}, DType::int32}, dense{"t", {4}};
  CHECK(errors("sparse_categorical_accuracy", output, sparse) == "");
  CHECK(errors("sparse_categorical_accuracy", output, dense) ==
        "expected a target of int32 scalar, found 't' of float32 4");
  CHECK(errors("categorical_accuracy", output, sparse) ==
        "expected a target of float32 4, found 't' of int32 scalar");
  CHECK(errors("categorical_accuracy", output, dense) == "");
  CHECK(errors("accuracy", output, sparse) == "");
  CHECK(errors("accuracy", output, dense) == "");
  CHECK(errors("accuracy", {"y", {1}}, {"t", {1}}) == "");
  CHECK(errors("precision: {thresholds: 0.9}", output, dense) == "");
  CHECK(errors("precision", output, sparse) == "");
  CHECK(
      errors("precision: {thresholds: 0.9}", output, sparse) ==
      "'thresholds' requires columns that are yes/no predictions, but the target of 'y' is the number of one "
      "of 4 classes, for which the largest score is the prediction");
  CHECK(errors("f1_score: {threshold: 0.9}", output, sparse) != "");
  CHECK(errors("f1_score: {threshold: 0.9}", {"y", {1}}, sparse) == "");
  CHECK(errors("dice: {threshold: 0.9}", {"y", {1}}, {"t", {1}}) == "");
  CHECK(errors("dice: {include_background: false}", output, sparse) == "");
  CHECK(errors("dice: {include_background: false}", {"y", {1}}, {"t", {1}}) ==
        "'include_background: false' requires an output with a column for each class, the first of which is "
        "the background; found the single column of 'y', which has no background");
  CHECK(errors("binary_accuracy", output, dense) == "");
  CHECK(errors("binary_accuracy", output, sparse) != "");
  CHECK(errors("mean_absolute_error", output, dense) == "");
  CHECK(errors("mean_absolute_error", output, {"t", {5}}) != "");
  CHECK(errors("top_k: {k: 4}", output, sparse) == "");
  CHECK(errors("perplexity", output, sparse) == "");
  CHECK(errors("perplexity", output, dense) == "expected a target of int32 scalar, found 't' of float32 4");
  CHECK(errors("cohen_kappa", output, dense) == "");
  CHECK(errors("matthews_correlation", {"y", {1001}}, sparse) ==
        "supports at most 1000 classes, found 1001 of 'y'");
  CHECK(errors("precision_at_recall: {recall: 0.5, class_id: 3}", output, sparse) == "");
  CHECK(errors("precision_at_recall: {recall: 0.5, class_id: 4}", output, sparse) ==
        "class_id 4 is not one of the 4 columns of 'y', which are counted from 0");
  CHECK(errors("top_k", output, sparse) == "k 5 is more than the 4 classes of 'y'");
}

}  // namespace dtrain::test
