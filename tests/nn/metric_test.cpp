// Tests metrics by their formulas and by sums of counts. metric_logits_test.cpp tests scores that are
// probabilities or logits, and metric_buckets_test.cpp tests auc and precision_at_recall.
#include <cmath>
#include <map>
#include <string>
#include <vector>

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
  // The target classes are 2 0 1 1. The largest scores of the rows are in the columns 2 0 1 2; if scores are
  // equal, the lower column ranks first.
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
  // In the four rows, the columns above 0.5 are: none; 0; 1; none. The columns above 0.35 are: 2; 0; 1; 2.
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
  // The sums are the numbers of correct predictions, of all predictions and of targets, each for four
  // classes. The last class has neither predictions nor targets.
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
  // With class_id: 1, the metric reads the second column of scores.
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
  // 65 of 85 predictions are correct. Random predictions with the same class frequencies would give (25 * 35
  // + 60 * 50) / 85 correct predictions on average.
  const std::vector<double> two{20, 5, 15, 45};
  is("cohen_kappa", two, (65.0 / 85 - 3875.0 / 7225) / (1 - 3875.0 / 7225));
  is("cohen_kappa: {weightage: linear}", two, (65.0 / 85 - 3875.0 / 7225) / (1 - 3875.0 / 7225));
  is("matthews_correlation", two, (45.0 * 20 - 15.0 * 5) / std::sqrt(60.0 * 50 * 35 * 25));
  // A single output column also stands for two classes.
  CHECK(result_of("matthews_correlation", two, 1, 1).as_double() ==
        doctest::Approx((45.0 * 20 - 15.0 * 5) / std::sqrt(60.0 * 50 * 35 * 25)));
  // The three classes have 4, 3 and 3 targets and 4, 2 and 4 predictions. Independent predictions would give
  // the matrix 16 8 16, 12 6 12, 12 6 12, in tenths.
  const std::vector<double> three{3, 0, 1, 1, 2, 0, 0, 0, 3};
  is("cohen_kappa", three, 1 - 2 / ((8 + 16 + 12 + 12 + 12 + 6) / 10.0));
  is("cohen_kappa: {weightage: linear}", three, 1 - (2 + 1) / ((8 + 2 * 16 + 12 + 12 + 2 * 12 + 6) / 10.0));
  is("cohen_kappa: {weightage: quadratic}", three,
     1 - (4 + 1) / ((8 + 4 * 16 + 12 + 12 + 4 * 12 + 6) / 10.0));
  is("matthews_correlation", three,
     (8 * 10 - (16 + 6 + 12)) / std::sqrt((100.0 - (16 + 9 + 9)) * (100.0 - (16 + 4 + 16))));
  // In the first two checks, all targets and all predictions are of class 0. In the next two checks, only the
  // predictions are all of one class.
  CHECK(std::isnan(result_of("cohen_kappa", {3, 0, 0, 0}, 3, 2).as_double()));
  is("matthews_correlation", {3, 0, 0, 0}, 0);
  is("cohen_kappa", {3, 0, 2, 0}, 0);
  is("matthews_correlation", {3, 0, 2, 0}, 0);
  is("cohen_kappa", {0, 3, 3, 0}, -1);
  is("matthews_correlation", {0, 3, 3, 0}, -1);
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
  // In each column, all three targets are 2. The predictions of the first column are exact; those of the
  // second column are always off by 1.
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
        "expected a target of type int32 and shape scalar, but found 't' of type float32 and shape 4");
  CHECK(errors("categorical_accuracy", output, sparse) ==
        "expected a target of type float32 and shape 4, but found 't' of type int32 and shape scalar");
  CHECK(errors("categorical_accuracy", output, dense) == "");
  CHECK(errors("accuracy", output, sparse) == "");
  CHECK(errors("accuracy", output, dense) == "");
  CHECK(errors("accuracy", {"y", {1}}, {"t", {1}}) == "");
  CHECK(errors("precision: {thresholds: 0.9}", output, dense) == "");
  CHECK(errors("precision", output, sparse) == "");
  CHECK(errors("precision: {thresholds: 0.9}", output, sparse) ==
        "'thresholds' applies only to yes/no predictions (one for each row, or one for each column), but 'y' "
        "predicts exactly one of 4 classes; remove this option");
  CHECK(errors("f1_score: {threshold: 0.9}", output, sparse) != "");
  CHECK(errors("f1_score: {threshold: 0.9}", {"y", {1}}, sparse) == "");
  CHECK(errors("dice: {threshold: 0.9}", {"y", {1}}, {"t", {1}}) == "");
  CHECK(errors("dice: {include_background: false}", output, sparse) == "");
  CHECK(errors("dice: {include_background: false}", {"y", {1}}, {"t", {1}}) ==
        "'include_background: false' requires an output with one column for each class, in which the first "
        "column is the background; but 'y' has a single column and no background");
  CHECK(errors("binary_accuracy", output, dense) == "");
  CHECK(errors("binary_accuracy", output, sparse) != "");
  CHECK(errors("mean_absolute_error", output, dense) == "");
  CHECK(errors("mean_absolute_error", output, {"t", {5}}) != "");
  CHECK(errors("top_k: {k: 4}", output, sparse) == "");
  CHECK(errors("perplexity", output, sparse) == "");
  CHECK(errors("perplexity", output, dense) ==
        "expected a target of type int32 and shape scalar, but found 't' of type float32 and shape 4");
  CHECK(errors("cohen_kappa", output, dense) == "");
  CHECK(errors("matthews_correlation", {"y", {1001}}, sparse) ==
        "expected an output of at most 1000 classes, but found 1001 classes in 'y'");
  CHECK(errors("precision_at_recall: {recall: 0.5, class_id: 3}", output, sparse) == "");
  CHECK(errors("precision_at_recall: {recall: 0.5, class_id: 4}", output, sparse) ==
        "class_id must be less than the number of columns, but class_id is 4 and 'y' has 4 columns");
  CHECK(errors("top_k", output, sparse) ==
        "k must be at most the number of classes, but k is 5 and 'y' has 4 classes");
}

}  // namespace dtrain::test
