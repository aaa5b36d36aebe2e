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
  loss.run(bench.device.ops(), own.data(), target, scale, loss_scale.data(), diff ? own_diff.data() : nullptr,
           total.data(), kRows, kColumns);
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
    parse<Metric>(yaml)->run(device.ops(), own.data(), target, sum.data(), kRows, kColumns);
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
  parse<Metric>("accuracy")->run(device.ops(), prediction.data(), target, sum.data(), kRows, 1);
  CHECK(sum.read()[0] == 3);
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
  CHECK(said("binary_accuracy", output, dense) == "");
  CHECK(said("binary_accuracy", output, sparse) != "");
  CHECK(said("mean_absolute_error", output, dense) == "");
  CHECK(said("mean_absolute_error", output, {"t", {5}}) != "");
  CHECK(said("top_k: {k: 4}", output, sparse) == "");
  CHECK(said("top_k", output, sparse) == "k 5 is more than the 4 classes of 'y'");
}

}  // namespace dtrain
