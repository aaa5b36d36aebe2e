// Losses and metrics against their formulas, gradients against differences.
#include "nn/loss.h"

#include <cmath>
#include <functional>
#include <numeric>

#include <doctest/doctest.h>

#include "config/load.h"
#include "layer_harness.h"

namespace dtrain {
namespace {

constexpr int64_t kRows = 4, kColumns = 3;

/// A device's operations and a target that is its tests' own.
struct Bench {
  explicit Bench(test::Device& on) : device(on) {}

  test::Device& device;
  std::vector<int32_t> classes = {2, 0, 1, 1};
  Values dense;
  // As the last view looks at them.
  test::Array<int32_t> own_classes = {};
  test::Array<float> own_dense = {};

  View sparse() {
    own_classes = device.array(classes);
    return {own_classes.data(), {kRows}, DType::int32};
  }
  View floats() {
    own_dense = device.array(dense);
    return {own_dense.data(), {kRows, kColumns}, DType::float32};
  }
};

template <class Base>
Configured<Base> parse(const std::string& yaml) {
  Diagnostics diagnostics;
  auto kind = registry<Base>().parse(parse_yaml(yaml, "l.yaml", diagnostics), diagnostics);
  REQUIRE_NOTHROW(diagnostics.throw_if_errors());
  return kind;
}

/// What a loss adds to a total; its gradient into `diff`, times `scale` and the state's loss scale of 4.
double total_of(const Loss& loss, Bench& bench, const View& target, const Values& prediction, float scale = 0,
                Values* diff = nullptr) {
  const auto own = bench.device.typed(prediction), own_diff = bench.device.typed(prediction.size());
  const auto total = bench.device.array(std::vector<double>{100});
  const auto loss_scale = bench.device.array(Values{4});
  loss.run(bench.device.ops(), {.prediction = own.data(),
                                .target = target,
                                .total = total.data(),
                                .rows = kRows,
                                .columns = kColumns,
                                .diff_prediction = diff ? own_diff.data() : nullptr,
                                .scale = scale,
                                .loss_scale = loss_scale.data()});
  if (diff) *diff = own_diff.read();
  return total.read()[0] - 100;
}

/// `row(prediction, r)` is the r-th row's loss by the formula.
void check_loss(const Loss& loss, Bench& bench, const View& target, Values prediction,
                const std::function<double(const Values&, size_t)>& row) {
  prediction = bench.device.kept(std::move(prediction));
  const auto formula = [&] {
    double sum = 0;
    for (size_t r = 0; r < kRows; ++r) sum += row(prediction, r);
    return sum;
  };
  Values diff;
  CHECK(total_of(loss, bench, target, prediction, 0.125f, &diff) == doctest::Approx(formula()).epsilon(1e-5));
  CHECK(total_of(loss, bench, target, prediction) == doctest::Approx(formula()).epsilon(1e-5));
  for (size_t i = 0; i < prediction.size(); ++i) {
    const float x = prediction[i];
    prediction[i] = x + 1e-3f;
    const double above = formula(), wide = prediction[i];
    prediction[i] = x - 1e-3f;
    const double slope = (above - formula()) / (wide - prediction[i]);
    prediction[i] = x;
    INFO("element " << i);
    CHECK(std::abs(diff[i] - 0.5 * slope) <= bench.device.tolerance(1e-3) * (1 + std::abs(slope)));
  }
}

/// As the device keeps them.
Values probabilities(const Bench& bench) {
  return bench.device.kept({0.2f, 0.3f, 0.5f, 0.7f, 0.1f, 0.2f, 0.05f, 0.9f, 0.05f, 0.3f, 0.3f, 0.4f});
}

double sum_of_row(const Values& values, size_t r, const std::function<double(double)>& f) {
  double sum = 0;
  for (size_t c = 0; c < kColumns; ++c) sum += f(values[r * kColumns + c]);
  return sum;
}

std::optional<TensorSpec> target_of(const std::string& yaml, const TensorSpec& output) {
  return parse<Loss>(yaml)->target(output, [](const std::string&) {});
}

}  // namespace

DEVICE_TEST_CASE("cross-entropies") {
  Bench bench(device);
  const auto sparse_row = [&](const Values& p, size_t r) {
    const auto k = static_cast<size_t>(bench.classes[r]);
    // Keras scales probabilities to a sum of 1 first.
    return -std::log(p[r * kColumns + k] / sum_of_row(p, r, [](double x) { return x; }));
  };
  const auto sparse_logits_row = [&](const Values& x, size_t r) {
    const auto k = static_cast<size_t>(bench.classes[r]);
    return std::log(sum_of_row(x, r, [](double v) { return std::exp(v); })) - x[r * kColumns + k];
  };
  const Values logits = spread_values(kRows * kColumns, -4, 4, 1);
  check_loss(*parse<Loss>("sparse_categorical_crossentropy: {from_logits: true}"), bench, bench.sparse(),
             logits, sparse_logits_row);

  bench.dense = {0.1f, 0.2f, 0.7f, 1, 0, 0, 0.5f, 0.5f, 0, 0, 0, 1};
  const auto weighted = [&](const Values& x, size_t r, bool from_logits) {
    double sum = 0;
    const double norm = sum_of_row(x, r, [&](double v) { return from_logits ? std::exp(v) : v; });
    for (size_t i = r * kColumns; i < (r + 1) * kColumns; ++i)
      sum -= bench.dense[i] * (from_logits ? x[i] - std::log(norm) : std::log(x[i] / norm));
    return sum;
  };
  check_loss(*parse<Loss>("categorical_crossentropy: {from_logits: true}"), bench, bench.floats(), logits,
             [&](const Values& x, size_t r) { return weighted(x, r, true); });

  const auto sparse = parse<Loss>("sparse_categorical_crossentropy");
  const auto dense = parse<Loss>("categorical_crossentropy");
  double expected_sparse = 0, expected_dense = 0;
  for (size_t r = 0; r < kRows; ++r) {
    expected_sparse += sparse_row(probabilities(bench), r);
    expected_dense += weighted(probabilities(bench), r, false);
  }
  // Rows that were rounded have a sum of nearly 1, which the formula takes out.
  const double tolerance = device.tolerance(1e-5);
  CHECK(total_of(*sparse, bench, bench.sparse(), probabilities(bench)) ==
        doctest::Approx(expected_sparse).epsilon(tolerance));
  CHECK(total_of(*dense, bench, bench.floats(), probabilities(bench)) ==
        doctest::Approx(expected_dense).epsilon(tolerance));
}

DEVICE_TEST_CASE("elementwise losses") {
  Bench bench(device);
  bench.dense = {0, 1, 1, 0, 0, 1, 1, 0, 1, 0, 1, 0};
  const auto mean = [&](const std::function<double(double, double)>& f) {
    return [&bench, f](const Values& x, size_t r) {
      double sum = 0;
      for (size_t i = r * kColumns; i < (r + 1) * kColumns; ++i) sum += f(x[i], bench.dense[i]);
      return sum / kColumns;
    };
  };
  const auto cross = [](double p, double y) { return -y * std::log(p) - (1 - y) * std::log(1 - p); };
  check_loss(*parse<Loss>("binary_crossentropy"), bench, bench.floats(), probabilities(bench), mean(cross));
  const Values wide = spread_values(kRows * kColumns, -3, 3, 4);
  check_loss(*parse<Loss>("binary_crossentropy: {from_logits: true}"), bench, bench.floats(), wide,
             mean([&](double x, double y) { return cross(1 / (1 + std::exp(-x)), y); }));
  check_loss(*parse<Loss>("mean_squared_error"), bench, bench.floats(), wide,
             mean([](double x, double y) { return (x - y) * (x - y); }));
  check_loss(*parse<Loss>("mean_absolute_error"), bench, bench.floats(), wide,
             mean([](double x, double y) { return std::abs(x - y); }));
  for (const double delta : {1.0, 0.6})
    check_loss(*parse<Loss>("huber: {delta: " + std::to_string(delta) + "}"), bench, bench.floats(), wide,
               mean([delta](double x, double y) {
                 const double e = std::abs(x - y);
                 return e <= delta ? e * e / 2 : delta * e - delta * delta / 2;
               }));
}

DEVICE_TEST_CASE("losses with options are what Keras's are") {
  Bench bench(device);
  bench.dense = {0, 1, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1};
  const auto mean = [&](const std::function<double(double, double)>& f) {
    return [&bench, f](const Values& x, size_t r) {
      double sum = 0;
      for (size_t i = r * kColumns; i < (r + 1) * kColumns; ++i) sum += f(x[i], bench.dense[i]);
      return sum / kColumns;
    };
  };
  const Values wide = spread_values(kRows * kColumns, -3, 3, 4);
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  const auto cross = [](double p, double y) { return -y * std::log(p) - (1 - y) * std::log(1 - p); };
  check_loss(*parse<Loss>("binary_crossentropy: {label_smoothing: 0.2}"), bench, bench.floats(),
             probabilities(bench), mean([&](double p, double y) { return cross(p, 0.8 * y + 0.1); }));
  check_loss(*parse<Loss>("binary_focal_crossentropy: {gamma: 3, apply_class_balancing: true, alpha: 0.3, "
                          "from_logits: true}"),
             bench, bench.floats(), wide, mean([&](double x, double y) {
               const double p = sigmoid(x), q = y * p + (1 - y) * (1 - p);
               return (y == 1 ? 0.3 : 0.7) * std::pow(1 - q, 3) * cross(p, y);
             }));
  const auto softmax = [](const Values& x, size_t r, size_t c) {
    return std::exp(x[r * kColumns + c]) / sum_of_row(x, r, [](double v) { return std::exp(v); });
  };
  check_loss(*parse<Loss>("sparse_categorical_crossentropy: {from_logits: true, label_smoothing: 0.3}"),
             bench, bench.sparse(), wide, [&](const Values& x, size_t r) {
               double sum = 0;
               for (size_t c = 0; c < kColumns; ++c)
                 sum -= (0.1 + (static_cast<int32_t>(c) == bench.classes[r] ? 0.7 : 0)) *
                        std::log(softmax(x, r, c));
               return sum;
             });
  check_loss(*parse<Loss>("categorical_focal_crossentropy: {from_logits: true, gamma: 1, alpha: 0.5}"), bench,
             bench.floats(), wide, [&](const Values& x, size_t r) {
               double sum = 0;
               for (size_t c = 0; c < kColumns; ++c)
                 sum -= 0.5 * bench.dense[r * kColumns + c] * (1 - softmax(x, r, c)) *
                        std::log(softmax(x, r, c));
               return sum;
             });
  check_loss(*parse<Loss>("log_cosh"), bench, bench.floats(), wide,
             mean([](double x, double y) { return std::log(std::cosh(x - y)); }));
  check_loss(*parse<Loss>("squared_hinge"), bench, bench.floats(), wide,
             mean([](double x, double y) { return std::pow(std::max(0.0, 1 - (2 * y - 1) * x), 2); }));
  check_loss(*parse<Loss>("cosine_similarity"), bench, bench.floats(), wide, [&](const Values& x, size_t r) {
    double dot = 0;
    for (size_t c = 0; c < kColumns; ++c) dot += x[r * kColumns + c] * bench.dense[r * kColumns + c];
    return -dot / std::sqrt(sum_of_row(x, r, [](double v) { return v * v; }));  // targets have a length of 1
  });
  CHECK(parse<Loss>("mean_squared_error: {weight: 0.25}")->weight() == 0.25);
  CHECK(parse<Loss>("mean_squared_error")->weight() == 1);
}

DEVICE_TEST_CASE("losses from before a final activation are the same losses") {
  Bench bench(device);
  bench.dense = {0, 1, 0, 1, 0, 0, 0, 1, 0, 1, 0, 0};
  const auto check = [&](const std::string& yaml, const std::string& activation, const View& target) {
    INFO(yaml);
    const auto loss = parse<Loss>(yaml);
    const auto layer = layer_of("activation: " + activation);
    const auto before = loss->before(*layer);
    REQUIRE(before);
    LayerRun run({.yaml = "activation: " + activation,
                  .inputs = {{"x", {kColumns}}},
                  .batch = kRows,
                  .low = -3,
                  .high = 3},
                 &device);
    CHECK(total_of(*before, bench, target, run.inputs[0]) ==
          doctest::Approx(total_of(*loss, bench, target, run.forward())).epsilon(device.tolerance(1e-5)));
    CHECK(!before->before(*layer));
    CHECK(!loss->before(*layer_of("activation: tanh")));
  };
  check("sparse_categorical_crossentropy", "softmax", bench.sparse());
  check("categorical_crossentropy", "softmax", bench.floats());
  check("binary_crossentropy", "sigmoid", bench.floats());
  check("binary_crossentropy: {label_smoothing: 0.1}", "sigmoid", bench.floats());
  check("binary_focal_crossentropy: {gamma: 1}", "sigmoid", bench.floats());
  check("sparse_categorical_crossentropy: {label_smoothing: 0.1}", "softmax", bench.sparse());
  check("categorical_focal_crossentropy", "softmax", bench.floats());
  CHECK(!parse<Loss>("binary_crossentropy")->before(*layer_of("activation: softmax")));
  CHECK(!parse<Loss>("categorical_crossentropy")->before(*layer_of("activation: sigmoid")));
  CHECK(!parse<Loss>("mean_squared_error")->before(*layer_of("activation: sigmoid")));
}

TEST_CASE("what losses want of their targets") {
  const TensorSpec output{"y", {5, 10}};
  const auto sparse = target_of("sparse_categorical_crossentropy", output);
  CHECK(sparse->shape == Shape{5});
  CHECK(sparse->dtype == DType::int32);
  for (const char* yaml :
       {"categorical_crossentropy", "binary_crossentropy", "mean_squared_error", "huber"}) {
    const auto dense = target_of(yaml, output);
    CHECK(dense->shape == Shape{5, 10});
    CHECK(dense->dtype == DType::float32);
  }
  CHECK(!target_of("sparse_categorical_crossentropy", {"y", {}}));
  CHECK(!target_of("categorical_crossentropy", {"y", {}}));
  CHECK(!target_of("mean_squared_error", {"y", {3}, DType::int32}));
  CHECK(target_of("mean_squared_error", {"y", {}})->shape == Shape{});
}

DEVICE_TEST_CASE("metrics") {
  Bench bench(device);
  const auto total = [&](const std::string& yaml, const View& target, const Values& prediction) {
    const auto own = device.typed(prediction);
    const auto sum = device.array(std::vector<double>{10});
    parse<Metric>(yaml)->run(
        device.ops(),
        {.prediction = own.data(), .target = target, .sums = sum.data(), .rows = kRows, .columns = kColumns});
    return sum.read()[0] - 10;
  };
  // Classes 2 0 1 1; the best of the rows are 2 0 1 2, and 1 comes after 0 where they are equal.
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
  // Above 0.5: none; 0; 1; none. Above 0.35: 2; 0; 1; 2.
  CHECK(total("binary_accuracy", bench.floats(), probabilities(bench)) ==
        doctest::Approx(2.0 / 3 + 1 + 1.0 / 3 + 2.0 / 3));
  CHECK(total("binary_accuracy: {threshold: 0.35}", bench.floats(), probabilities(bench)) ==
        doctest::Approx(1 + 1 + 1.0 / 3 + 1));
  CHECK(total("mean_absolute_error", bench.floats(), probabilities(bench)) ==
        doctest::Approx((1.0 + 0.6 + 1.9 + 1.2) / 3).epsilon(device.tolerance(1e-5)));
}

DEVICE_TEST_CASE("accuracy of one column is binary") {
  Bench bench(device);
  bench.dense = {0, 1, 1, 0};
  const auto prediction = device.typed(Values{0.4f, 0.6f, 0.3f, 0.1f});
  const auto sum = device.array(std::vector<double>{0});
  View target = bench.floats();
  target.shape = {kRows, 1};
  parse<Metric>("accuracy")
      ->run(device.ops(), {.prediction = prediction.data(),
                           .target = target,
                           .sums = sum.data(),
                           .rows = kRows,
                           .columns = 1});
  CHECK(sum.read()[0] == 3);
}

namespace {

/// What a metric comes to with these sums and this weight, of an output of so many columns.
Json result_of(const std::string& yaml, const std::vector<double>& sums, double weight, int64_t columns) {
  return parse<Metric>(yaml)->result(sums, weight, {"y", {columns}});
}

}  // namespace

TEST_CASE("metrics of sums") {
  // Right, predicted and there, by class; the last class neither is predicted nor there.
  const std::vector<double> classes{3, 0, 2, 0, 4, 1, 2, 0, 3, 1, 3, 0};
  CHECK(result_of("precision", classes, 7, 4).as_double() == doctest::Approx(5.0 / 7));
  CHECK(result_of("precision: {average: none}", classes, 7, 4).dump() == "[0.75, 0.0, 1.0, 0.0]");
  CHECK(result_of("recall: {average: macro}", classes, 7, 4).as_double() ==
        doctest::Approx((1 + 0 + 2.0 / 3) / 3));
  CHECK(result_of("recall: {average: weighted}", classes, 7, 4).as_double() == doctest::Approx(5.0 / 7));
  CHECK(result_of("f1_score: {average: micro}", classes, 7, 4).as_double() == doctest::Approx(5.0 / 7));
  CHECK(result_of("f1_score", {3, 4, 6}, 9, 1).as_double() == doctest::Approx(0.6));
  CHECK(result_of("confusion_matrix", {1, 2, 3, 4.5}, 9, 2).dump() == "[[1, 2], [3, 4.5]]");
  CHECK(result_of("mean_iou", {1, 2, 0, 4}, 7, 2).as_double() == doctest::Approx((1.0 / 3 + 4.0 / 6) / 2));
  const std::vector<double> buckets{4, 1, 0, 1, 2, 3};  // those that are not; those that are
  CHECK(result_of("auc: {num_thresholds: 3}", buckets, 11, 1).as_double() ==
        doctest::Approx((4 * 5.5 + 1 * 4) / 30));
  CHECK(result_of("auc: {num_thresholds: 3, curve: PR}", buckets, 11, 1).as_double() ==
        doctest::Approx((3 * 1 + 2 * 5.0 / 6 + 1 * 6.0 / 11) / 6));
  CHECK(std::isnan(result_of("auc: {num_thresholds: 3}", {0, 0, 0, 1, 2, 3}, 6, 1).as_double()));
  CHECK(result_of("r2_score", {6, 14, 0.5, 3}, 3, 1).as_double() == doctest::Approx(0.75));
  CHECK(result_of("r2_score: {class_aggregation: none}", {6, 6, 14, 12, 0.5, 1, 3}, 3, 2).dump() ==
        "[0.75, 0.0]");
  CHECK(result_of("root_mean_squared_error", {18}, 2, 1).as_double() == 3);
  CHECK(result_of("cosine_similarity", {-1}, 2, 3).as_double() == 0.5);
  CHECK(!parse<Metric>("f1_score")->is_number({"y", {4}}));
  CHECK(parse<Metric>("f1_score")->is_number({"y", {1}}));
  CHECK(parse<Metric>("f1_score: {average: macro}")->is_number({"y", {4}}));
}

DEVICE_TEST_CASE("a threshold is one of probabilities, whatever the loss takes the output for") {
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
  const auto metric = parse<Metric>("f1_score: {threshold: 0.75}");
  const auto of = [&](const char* loss) { return metric->for_loss(*parse<Loss>(loss)); };
  CHECK(count(*metric, {0.5f, 0.875f, 0.625f, 0.125f}) == std::vector<double>{1, 1, 2});
  CHECK(count(*of("binary_crossentropy"), {0.5f, 0.875f, 0.625f, 0.125f}) == std::vector<double>{1, 1, 2});
  // The logit of 0.75 is 1.0986.
  CHECK(count(*of("binary_crossentropy: {from_logits: true}"), {0.875f, 1.25f, 1, -2}) ==
        std::vector<double>{1, 1, 2});
}

namespace {

/// The metric over the bench's dense targets, of an output that has this loss.
double result_with(const std::string& yaml, const std::string& loss, Bench& bench, const Values& scores) {
  const std::shared_ptr<const Metric> parsed = parse<Metric>(yaml).value;
  const auto for_loss = parsed->for_loss(*parse<Loss>(loss));
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

DEVICE_TEST_CASE("metrics are the same of probabilities and of the logits that the loss makes them of") {
  Bench bench(device);
  const auto same = [&](const std::vector<const char*>& metrics, const std::string& loss, const Values& p,
                        const Values& logits, double tolerance) {
    for (const char* metric : metrics) {
      CAPTURE(metric);
      CHECK(result_with(metric, loss + ": {from_logits: true}", bench, logits) ==
            doctest::Approx(result_with(metric, loss, bench, p)).epsilon(tolerance));
    }
  };
  // Softmaxes of 0.665 0.245 0.090, 0.506 0.307 0.187, 0.422 0.422 0.155 and 0.155 0.422 0.422: by a sigmoid
  // of each logit other columns would be above a half.
  bench.dense = {1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 1};
  const Values softmaxes{0.6652f, 0.2447f, 0.09f,   0.5065f, 0.3072f, 0.1863f,
                         0.4223f, 0.4223f, 0.1554f, 0.1554f, 0.4223f, 0.4223f};
  const Values logits{2, 1, 0, 0.5f, 0, -0.5f, 1, 1, 0, -1, 0, 0};
  same({"precision", "recall: {average: macro}", "precision: {thresholds: 0.4}", "f1_score: {average: macro}",
        "f1_score: {average: macro, threshold: 0.3}", "binary_accuracy", "binary_accuracy: {threshold: 0.3}",
        "accuracy", "auc", "auc: {curve: PR}", "mean_iou"},
       "categorical_crossentropy", device.kept(softmaxes), logits, device.tolerance(1e-3));
  // Sigmoids of 0.62 0.38, 0.73 0.88, 0.27 0.55 and 0.44 0.57.
  bench.dense = {1, 0, 1, 0, 0, 1, 1, 0};
  const Values sigmoids{0.6225f, 0.3775f, 0.7311f, 0.8808f, 0.2689f, 0.5469f, 0.4378f, 0.5622f};
  const Values each{0.5f, -0.5f, 1, 2, -1, 0.1875f, -0.25f, 0.25f};
  same({"precision", "recall", "f1_score: {average: macro}", "binary_accuracy",
        "binary_accuracy: {threshold: 0.56}", "auc"},
       "binary_crossentropy", device.kept(sigmoids), each, device.tolerance(1e-3));
  // Of one column `accuracy` is binary.
  bench.dense = {1, 1, 0, 0};
  same({"accuracy", "binary_accuracy", "f1_score"}, "binary_crossentropy",
       device.kept({0.5744f, 0.4256f, 0.5622f, 0.25f}), {0.3f, -0.3f, 0.25f, -1.1f}, 1e-6);
  CHECK(result_with("accuracy", "binary_crossentropy: {from_logits: true}", bench,
                    {0.3f, -0.3f, 0.25f, -1.1f}) == 0.5);
}

DEVICE_TEST_CASE("f1_score of columns that say yes or no each is by a threshold, of others by the largest") {
  Bench bench(device);
  bench.dense = {1, 1, 0, 1, 1, 0, 0, 0};
  const Values scores{0.75f, 0.875f, 0.25f, 0.375f, 0.625f, 0.125f, 0.125f, 0.25f};
  // Right 2 of 2 and 2; right 1 of 1 and 2.
  CHECK(result_with("f1_score: {average: macro}", "binary_crossentropy", bench, scores) ==
        doctest::Approx((1 + 2.0 / 3) / 2));
  // The largest: 1 1 0 1; of the targets 0 1 0 0.
  for (const char* loss : {"categorical_crossentropy", "mean_squared_error"})
    CHECK(result_with("f1_score: {average: macro}", loss, bench, scores) ==
          doctest::Approx((2 * 1.0 / (1 + 3) + 2 * 1.0 / (3 + 1)) / 2));
}

TEST_CASE("which way a metric gets better") {
  for (const char* larger : {"accuracy", "binary_accuracy", "sparse_categorical_accuracy", "top_k",
                             "precision: {name: acc_loss}", "recall: {name: misses}", "f1_score",
                             "auc: {name: roc}", "mean_iou", "r2_score", "cosine_similarity"})
    CHECK(parse<Metric>(larger)->larger_is_better());
  for (const char* smaller : {"mean_absolute_error", "mean_squared_error", "root_mean_squared_error",
                              "log_cosh", "binary_crossentropy", "hinge", "poisson", "kl_divergence"})
    CHECK(!parse<Metric>(smaller)->larger_is_better());
}

TEST_CASE("r2_score of columns that do not vary is scikit-learn's") {
  // Targets 2 2 2 of each column; the first is met, the second missed by 1 each time.
  const std::vector<double> sums{6, 6, 12, 12, 0, 3, 3};
  CHECK(result_of("r2_score: {class_aggregation: variance_weighted_average}", sums, 3, 2).as_double() == 0.5);
  CHECK(result_of("r2_score", sums, 3, 2).as_double() == 0.5);
}

TEST_CASE("metrics that Keras would compute otherwise are not told it") {
  const TensorSpec one{"y", {1}}, four{"y", {4}};
  const auto told = [](const std::string& metric, const std::string& loss, const TensorSpec& output) {
    return !parse<Metric>(metric)->for_loss(*parse<Loss>(loss))->keras_config(output, output).is_null();
  };
  const std::string logits = "binary_crossentropy: {from_logits: true}",
                    softmax_logits = "categorical_crossentropy: {from_logits: true}";
  for (const char* metric : {"precision", "recall", "f1_score", "binary_accuracy", "accuracy"}) {
    CAPTURE(metric);
    CHECK(told(metric, "binary_crossentropy", one));
    CHECK(!told(metric, logits, one));
  }
  CHECK(told("auc", logits, one));
  CHECK(told("auc", "categorical_crossentropy", four));
  CHECK(!told("auc", softmax_logits, four));
  CHECK(!told("precision", softmax_logits, four));
  CHECK(told("f1_score", softmax_logits, four));
  CHECK(told("accuracy", softmax_logits, four));
  CHECK(parse<Metric>("f1_score")
            ->for_loss(*parse<Loss>("binary_crossentropy"))
            ->keras_config(four, four)
            .at("config")
            .at("threshold")
            .as_double() == 0.5);
}

TEST_CASE("losses that Keras would compute otherwise are not told it") {
  CHECK(parse<Loss>("sparse_categorical_crossentropy: {label_smoothing: 0.1}")->keras_config().is_null());
  CHECK(parse<Metric>("sparse_categorical_crossentropy: {label_smoothing: 0.1}")
            ->keras_config({"y", {4}}, {"t", {}, DType::int32})
            .is_null());
}

TEST_CASE("metrics say where output or target do not suit") {
  const auto said = [](const std::string& yaml, const TensorSpec& output, const TensorSpec& target) {
    std::string all;
    const bool good = parse<Metric>(yaml)->check(output, target, [&](const std::string& m) { all += m; });
    CHECK(good == all.empty());
    return all;
  };
  const TensorSpec output{"y", {4}}, sparse{"t", {}, DType::int32}, dense{"t", {4}};
  CHECK(said("sparse_categorical_accuracy", output, sparse) == "");
  CHECK(said("sparse_categorical_accuracy", output, dense) ==
        "expected a target of int32 scalar, found 't' of float32 4");
  CHECK(said("categorical_accuracy", output, sparse) ==
        "expected a target of float32 4, found 't' of int32 scalar");
  CHECK(said("categorical_accuracy", output, dense) == "");
  CHECK(said("accuracy", output, sparse) == "");
  CHECK(said("accuracy", output, dense) == "");
  CHECK(said("accuracy", {"y", {1}}, {"t", {1}}) == "");
  CHECK(said("precision: {thresholds: 0.9}", output, dense) == "");
  CHECK(said("precision", output, sparse) == "");
  CHECK(
      said("precision: {thresholds: 0.9}", output, sparse) ==
      "'thresholds' is for columns that say yes or no each, and the target of 'y' is the number of one of 4 "
      "classes: the largest score is the answer");
  CHECK(said("f1_score: {threshold: 0.9}", output, sparse) != "");
  CHECK(said("f1_score: {threshold: 0.9}", {"y", {1}}, sparse) == "");
  CHECK(said("binary_accuracy", output, dense) == "");
  CHECK(said("binary_accuracy", output, sparse) != "");
  CHECK(said("mean_absolute_error", output, dense) == "");
  CHECK(said("mean_absolute_error", output, {"t", {5}}) != "");
  CHECK(said("top_k: {k: 4}", output, sparse) == "");
  CHECK(said("top_k", output, sparse) == "k 5 is more than the 4 classes of 'y'");
}

}  // namespace dtrain
