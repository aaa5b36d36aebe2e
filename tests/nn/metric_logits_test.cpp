// Tests metrics of scores. The scores are probabilities, or logits if the loss of the output takes logits.
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "head_harness.h"
#include "nn/loss.h"

namespace dtrain::test {

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
  // The softmaxes are 0.665 0.245 0.090, 0.506 0.307 0.187, 0.422 0.422 0.155 and 0.155 0.422 0.422. If each
  // logit were passed through a sigmoid instead, other columns would be above 0.5.
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
  // If an output has one column, `accuracy` is binary accuracy.
  bench.dense = {1, 1, 0, 0};
  same({"accuracy", "binary_accuracy", "f1_score"}, "binary_crossentropy",
       device.kept({0.5744f, 0.4256f, 0.5622f, 0.25f}), {0.3f, -0.3f, 0.25f, -1.1f}, 1e-6);
  CHECK(result_with("accuracy", "binary_crossentropy: {from_logits: true}", bench,
                    {0.3f, -0.3f, 0.25f, -1.1f}) == 0.5);
}

DEVICE_TEST_CASE("f1_score uses a threshold for binary columns and the largest value otherwise") {
  Bench bench(device);
  bench.dense = {1, 1, 0, 1, 1, 0, 0, 0};
  const Values scores{0.75f, 0.875f, 0.25f, 0.375f, 0.625f, 0.125f, 0.125f, 0.25f};
  // Class 0 has 2 predictions and 2 targets; 2 predictions are correct. Class 1 has 1 prediction and 2
  // targets; 1 prediction is correct.
  CHECK(result_with("f1_score: {average: macro}", "binary_crossentropy", bench, scores) ==
        doctest::Approx((1 + 2.0 / 3) / 2));
  // The predicted classes are 1 1 0 1, the target classes 0 1 0 0.
  for (const char* loss : {"categorical_crossentropy", "mean_squared_error"})
    CHECK(result_with("f1_score: {average: macro}", loss, bench, scores) ==
          doctest::Approx((2 * 1.0 / (1 + 3) + 2 * 1.0 / (3 + 1)) / 2));
}

}  // namespace dtrain::test
