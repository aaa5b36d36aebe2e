// Checks losses and metrics against their formulas, and gradients against finite differences.
#include "nn/loss.h"

#include <cmath>
#include <functional>
#include <numeric>

#include <doctest/doctest.h>

#include "head_harness.h"
#include "support/errors.h"

namespace dtrain::test {
namespace {

/// Returns the amount that a loss adds to a total. If `diff` is not null, writes the gradient of the loss to
/// `diff`. The gradient is multiplied by `scale` and by a loss scale of 4.
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

/// Checks a loss and its gradient against a formula: `row(prediction, r)` returns the loss of row r.
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

double sum_of_row(const Values& values, size_t r, const std::function<double(double)>& f) {
  double sum = 0;
  for (size_t c = 0; c < kColumns; ++c) sum += f(values[r * kColumns + c]);
  return sum;
}

std::optional<TensorSpec> target_of(const std::string& yaml, const TensorSpec& output) {
  return parse_kind<Loss>(yaml)->target(output, [](const std::string&) {});
}

}  // namespace

DEVICE_TEST_CASE("cross-entropies match their formulas") {
  Bench bench(device);
  const auto sparse_row = [&](const Values& p, size_t r) {
    const auto k = static_cast<size_t>(bench.classes[r]);
    // Keras first normalizes probabilities to a sum of 1.
    return -std::log(p[r * kColumns + k] / sum_of_row(p, r, [](double x) { return x; }));
  };
  const auto sparse_logits_row = [&](const Values& x, size_t r) {
    const auto k = static_cast<size_t>(bench.classes[r]);
    return std::log(sum_of_row(x, r, [](double v) { return std::exp(v); })) - x[r * kColumns + k];
  };
  const Values logits = spread_values(kRows * kColumns, -4, 4, 1);
  check_loss(*parse_kind<Loss>("sparse_categorical_crossentropy: {from_logits: true}"), bench, bench.sparse(),
             logits, sparse_logits_row);

  bench.dense = {0.1f, 0.2f, 0.7f, 1, 0, 0, 0.5f, 0.5f, 0, 0, 0, 1};
  const auto weighted = [&](const Values& x, size_t r, bool from_logits) {
    double sum = 0;
    const double norm = sum_of_row(x, r, [&](double v) { return from_logits ? std::exp(v) : v; });
    for (size_t i = r * kColumns; i < (r + 1) * kColumns; ++i)
      sum -= bench.dense[i] * (from_logits ? x[i] - std::log(norm) : std::log(x[i] / norm));
    return sum;
  };
  check_loss(*parse_kind<Loss>("categorical_crossentropy: {from_logits: true}"), bench, bench.floats(),
             logits, [&](const Values& x, size_t r) { return weighted(x, r, true); });

  const auto sparse = parse_kind<Loss>("sparse_categorical_crossentropy");
  const auto dense = parse_kind<Loss>("categorical_crossentropy");
  double expected_sparse = 0, expected_dense = 0;
  for (size_t r = 0; r < kRows; ++r) {
    expected_sparse += sparse_row(probabilities(bench), r);
    expected_dense += weighted(probabilities(bench), r, false);
  }
  // The device rounds probabilities, so that a row may not sum exactly to 1. The formula normalizes each row.
  const double tolerance = device.tolerance(1e-5);
  CHECK(total_of(*sparse, bench, bench.sparse(), probabilities(bench)) ==
        doctest::Approx(expected_sparse).epsilon(tolerance));
  CHECK(total_of(*dense, bench, bench.floats(), probabilities(bench)) ==
        doctest::Approx(expected_dense).epsilon(tolerance));
}

DEVICE_TEST_CASE("elementwise losses match their formulas") {
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
  check_loss(*parse_kind<Loss>("binary_crossentropy"), bench, bench.floats(), probabilities(bench),
             mean(cross));
  const Values wide = spread_values(kRows * kColumns, -3, 3, 4);
  check_loss(*parse_kind<Loss>("binary_crossentropy: {from_logits: true}"), bench, bench.floats(), wide,
             mean([&](double x, double y) { return cross(1 / (1 + std::exp(-x)), y); }));
  check_loss(*parse_kind<Loss>("mean_squared_error"), bench, bench.floats(), wide,
             mean([](double x, double y) { return (x - y) * (x - y); }));
  check_loss(*parse_kind<Loss>("mean_absolute_error"), bench, bench.floats(), wide,
             mean([](double x, double y) { return std::abs(x - y); }));
  for (const double delta : {1.0, 0.6})
    check_loss(*parse_kind<Loss>("huber: {delta: " + std::to_string(delta) + "}"), bench, bench.floats(),
               wide, mean([delta](double x, double y) {
                 const double e = std::abs(x - y);
                 return e <= delta ? e * e / 2 : delta * e - delta * delta / 2;
               }));
}

DEVICE_TEST_CASE("losses with options match Keras's formulas") {
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
  check_loss(*parse_kind<Loss>("binary_crossentropy: {label_smoothing: 0.2}"), bench, bench.floats(),
             probabilities(bench), mean([&](double p, double y) { return cross(p, 0.8 * y + 0.1); }));
  check_loss(
      *parse_kind<Loss>("binary_focal_crossentropy: {gamma: 3, apply_class_balancing: true, alpha: 0.3, "
                        "from_logits: true}"),
      bench, bench.floats(), wide, mean([&](double x, double y) {
        const double p = sigmoid(x), q = y * p + (1 - y) * (1 - p);
        return (y == 1 ? 0.3 : 0.7) * std::pow(1 - q, 3) * cross(p, y);
      }));
  const auto softmax = [](const Values& x, size_t r, size_t c) {
    return std::exp(x[r * kColumns + c]) / sum_of_row(x, r, [](double v) { return std::exp(v); });
  };
  check_loss(*parse_kind<Loss>("sparse_categorical_crossentropy: {from_logits: true, label_smoothing: 0.3}"),
             bench, bench.sparse(), wide, [&](const Values& x, size_t r) {
               double sum = 0;
               for (size_t c = 0; c < kColumns; ++c)
                 sum -= (0.1 + (static_cast<int32_t>(c) == bench.classes[r] ? 0.7 : 0)) *
                        std::log(softmax(x, r, c));
               return sum;
             });
  check_loss(*parse_kind<Loss>("categorical_focal_crossentropy: {from_logits: true, gamma: 1, alpha: 0.5}"),
             bench, bench.floats(), wide, [&](const Values& x, size_t r) {
               double sum = 0;
               for (size_t c = 0; c < kColumns; ++c)
                 sum -= 0.5 * bench.dense[r * kColumns + c] * (1 - softmax(x, r, c)) *
                        std::log(softmax(x, r, c));
               return sum;
             });
  check_loss(*parse_kind<Loss>("log_cosh"), bench, bench.floats(), wide,
             mean([](double x, double y) { return std::log(std::cosh(x - y)); }));
  check_loss(*parse_kind<Loss>("squared_hinge"), bench, bench.floats(), wide,
             mean([](double x, double y) { return std::pow(std::max(0.0, 1 - (2 * y - 1) * x), 2); }));
  check_loss(
      *parse_kind<Loss>("cosine_similarity"), bench, bench.floats(), wide, [&](const Values& x, size_t r) {
        double dot = 0;
        for (size_t c = 0; c < kColumns; ++c) dot += x[r * kColumns + c] * bench.dense[r * kColumns + c];
        return -dot / std::sqrt(sum_of_row(x, r, [](double v) { return v * v; }));  // targets have norm 1
      });
  CHECK(parse_kind<Loss>("mean_squared_error: {weight: 0.25}")->weight() == 0.25);
  CHECK(parse_kind<Loss>("mean_squared_error")->weight() == 1);
}

DEVICE_TEST_CASE("dice and tversky give Keras's numbers for samples of several rows") {
  Bench bench(device);
  bench.dense = {0, 1, 0, 1, 0, 0, 0, 1, 0, 0.25f, 0, 0.75f};
  const View target{bench.floats().data, {2, 2, 1, 3}, DType::float32};
  const auto check = [&](const std::string& yaml, double expected, const Values& expected_gradient) {
    CAPTURE(yaml);
    const auto own = bench.device.typed(probabilities(bench)), diff = bench.device.typed(kRows * kColumns);
    const auto total = bench.device.array(std::vector<double>{100});
    parse_kind<Loss>(yaml)->run(bench.device.ops(), {.prediction = own.data(),
                                                     .target = target,
                                                     .total = total.data(),
                                                     .rows = 4,
                                                     .columns = 3,
                                                     .positions = 2,
                                                     .diff_prediction = diff.data(),
                                                     .scale = 0.25f});
    // The mean over the two samples equals the mean over all rows.
    CHECK((total.read()[0] - 100) / 4 == doctest::Approx(expected).epsilon(device.tolerance(1e-5)));
    const Values gradient = diff.read();
    for (size_t i = 0; i < gradient.size(); ++i) {
      CAPTURE(i);
      CHECK(std::abs(gradient[i] - expected_gradient[i]) <= static_cast<float>(device.tolerance(1e-5)));
    }
  };
  check("dice", 0.43125,
        {0.0625f, -0.1875f, 0.0625f, -0.1875f, 0.0625f, 0.0625f, 0.079688f, -0.170312f, 0.079688f, 0.017187f,
         0.079688f, -0.107812f});
  check("dice: {axis: [1, 2]}", 0.5444008,
        {0.064635f, -0.187075f, 0, -0.110803f, 0.05102f, 0, 0.069444f, -0.089532f, 0.069444f, -0.069444f,
         0.061983f, -0.138889f});
  check("tversky: {alpha: 0.7, beta: 0.2}", 0.4061029,
        {0.027701f, -0.221607f, 0.027701f, -0.221607f, 0.027701f, 0.027701f, 0.034318f, -0.207926f, 0.034318f,
         -0.026243f, 0.034318f, -0.147365f});
  check("tversky: {alpha: 0.7, beta: 0.2, axis: [1, 2]}", 0.5428092,
        {0.025854f, -0.182899f, 0, -0.136657f, 0.015242f, 0, 0.039212f, -0.119395f, 0.024037f, -0.120903f,
         0.028278f, -0.160748f});
  bench.dense = {0, 1, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1};
  check_loss(*parse_kind<Loss>("dice: {axis: [1]}"), bench, bench.floats(), probabilities(bench),
             [&](const Values& x, size_t r) {
               double both = 0;
               for (size_t c = 0; c < kColumns; ++c)
                 both += x[r * kColumns + c] * bench.dense[r * kColumns + c];
               return 1 - 2 * both / (1 + sum_of_row(x, r, [](double v) { return v; }));
             });
}

TEST_CASE("dice and tversky sum over the axes of a sample only") {
  const TensorSpec mask{"mask", {8, 6, 3}};
  CHECK(target_of("dice", mask)->shape == Shape{8, 6, 3});
  CHECK(target_of("tversky: {axis: [1, 2]}", mask)->shape == Shape{8, 6, 3});
  std::string message;
  CHECK_FALSE(
      parse_kind<Loss>("dice: {axis: [1]}")->target(mask, [&](const std::string& text) { message = text; }));
  CHECK(message ==
        "'axis' must list all 3 axes of a sample of 'mask' (shape 8x6x3), counted from 1, or all axes except "
        "the last one, which is the axis of classes; but the number of listed axes is 1");
  CHECK_FALSE(target_of("dice", {"rows", {4, 3, 2, 2, 5}}));
  for (const char* axis : {"[0, 1, 2, 3]", "[2, 3]", "[]", "null"}) {
    CAPTURE(axis);
    Diagnostics diagnostics;
    registry<Loss>().parse(parse_yaml(std::string("dice: {axis: ") + axis + "}", "kind.yaml", diagnostics),
                           diagnostics);
    CHECK(messages(diagnostics).starts_with("kind.yaml:1:14: error: dice's axis: expected "));
  }
  CHECK(parse_kind<Loss>("dice")->is_of_samples());
  CHECK_FALSE(parse_kind<Loss>("binary_crossentropy")->is_of_samples());
}

DEVICE_TEST_CASE("a loss computed before the final activation has the same value") {
  Bench bench(device);
  bench.dense = {0, 1, 0, 1, 0, 0, 0, 1, 0, 1, 0, 0};
  const auto check = [&](const std::string& yaml, const std::string& activation, const View& target) {
    INFO(yaml);
    const auto loss = parse_kind<Loss>(yaml);
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
  CHECK(!parse_kind<Loss>("binary_crossentropy")->before(*layer_of("activation: softmax")));
  CHECK(!parse_kind<Loss>("categorical_crossentropy")->before(*layer_of("activation: sigmoid")));
  CHECK(!parse_kind<Loss>("mean_squared_error")->before(*layer_of("activation: sigmoid")));
}

TEST_CASE("losses check the shape and type of targets") {
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

}  // namespace dtrain::test
