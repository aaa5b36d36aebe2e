// Whole plans: their gradients, when those are ready, and what of a step reaches them.
#include "nn/plan.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <doctest/doctest.h>

#include "layer_harness.h"
#include "nn_support.h"

namespace dtrain {
namespace {

constexpr int64_t kBatch = 4;

/// Branches, a value that two read, statistics, a frozen layer, and an output that no loss looks at.
constexpr const char* kModel = R"(
inputs: {image: [6, 6, 3]}
layers:
  - conv2d: {name: first, filters: 8, kernel_size: 3, padding: same, activation: tanh}
  - batch_normalization: {name: normal}
  - conv2d: {name: frozen, filters: 8, kernel_size: 1, trainable: false}
  - add: {name: sum, inputs: [frozen, first]}
  - layer_normalization: {name: rows}
  - flatten: {}
  - dense: {name: hidden, units: 7, activation: sigmoid}
  - dense: {name: classes, units: 5}
  - dense: {name: apart, units: 3, inputs: hidden}
outputs: [classes, apart]
)";

/// A graph's plan for training by the first output, on a device, with everything that it reads and writes.
class PlanRun {
 public:
  explicit PlanRun(test::Device& on, const std::string& model = kModel)
      : graph(good_graph(model)),
        layout(graph),
        device(on),
        plan(graph, layout, heads(), on.ops(), kBatch, Plan::Purpose::training) {
    values.resize(static_cast<size_t>(layout.size()));
    initialize(graph, layout, 1, values.data());
    for (size_t i = 0; i < values.size(); ++i) values[i] += 0.1f * std::sin(static_cast<float>(i));
    values = device.exact(values);
    arena_ = device.memory(plan.arena_bytes());
  }

  /// on_ready is given the gradients as they are by then.
  using OnReady = std::function<void(int64_t end, const Values& gradients)>;
  void run(const StepInfo& info = {.seed = 1, .first_sample = 0, .global_batch = kBatch},
           float loss_scale = 1, const OnReady& on_ready = nullptr) {
    const bool copied = device.math.type != ComputeType::float32;
    const auto own_values = device.array(values);
    const auto weights = device.typed(values);
    const auto totals = device.array(std::vector<double>(Plan::count_totals(heads())));
    const auto state =
        device.array(std::vector<StepState>{{.now = {}, .gradient = {.loss_scale = loss_scale}}});
    const auto own_gradients = device.array(Values(static_cast<size_t>(layout.with_gradient()), kUntouched));
    const auto* floats = reinterpret_cast<const std::byte*>(own_values.data());
    plan.bind({.arena = reinterpret_cast<std::byte*>(arena_.data()),
               .values = own_values.data(),
               .weights = copied ? static_cast<const std::byte*>(weights.data()) : floats,
               .gradients = own_gradients.data(),
               .totals = totals.data(),
               .state = state.data()});
    load();
    plan.run(info, [&](int64_t end) {
      if (on_ready) on_ready(end, own_gradients.read());
    });
    gradients = own_gradients.read();
    total = totals.read()[0];
  }

  const ParameterSlice& slice(const std::string& layer, const std::string& name) const {
    for (const ParameterSlice& slice : layout.slices())
      if (slice.layer == layer && slice.name == name) return slice;
    FAIL("no parameter " << layer << "/" << name);
    return layout.slices()[0];
  }
  Values gradient(const std::string& layer, const std::string& name) const {
    const ParameterSlice& place = slice(layer, name);
    const auto first = gradients.begin() + static_cast<long>(place.offset);
    return {first, first + static_cast<long>(place.elements())};
  }

  static constexpr float kUntouched = 12345;
  Graph graph;
  ParameterLayout layout;
  test::Device& device;
  Plan plan;
  Values values, gradients;
  double total = 0;

 private:
  std::vector<Head> heads() const {
    Diagnostics diagnostics;
    const auto loss = registry<Loss>().parse(
        parse_yaml("sparse_categorical_crossentropy: {from_logits: true}", "l.yaml", diagnostics),
        diagnostics);
    const auto target =
        loss->target(graph.spec(graph.outputs[0]), [](const std::string& m) { FAIL_CHECK(m); });
    return {{graph.outputs[0], loss.value, {}, *target}};
  }

  void load() {
    REQUIRE(plan.columns().size() == 2);
    const View &images = plan.columns()[0], &classes = plan.columns()[1];
    const Values pixels = spread_values(images.elements(), -1, 1, 3);
    const auto bytes = test::bytes_of_values(pixels, device.math.type);
    device.context().copy_to_device(images.data, bytes.data(), bytes.size());
    const std::vector<int32_t> numbers = {2, 0, 4, 1};
    device.context().copy_to_device(classes.data, numbers.data(), numbers.size() * sizeof(int32_t));
  }

  test::Array<float> arena_;
};

}  // namespace

DEVICE_TEST_CASE("gradients are reported in prefixes, and are what they will be by then") {
  PlanRun run(device);
  std::vector<std::pair<int64_t, Values>> ready;
  run.run({.seed = 1, .first_sample = 0, .global_batch = kBatch}, 1,
          [&](int64_t end, const Values& gradients) { ready.emplace_back(end, gradients); });
  // The dense layers, the normalisations and the first convolution.
  CHECK(ready.size() >= 5);
  int64_t before = 0;
  for (const auto& [end, gradients] : ready) {
    CAPTURE(end);
    CHECK(end > before);
    before = end;
    CHECK(end <= run.layout.trained());
    CHECK(std::equal(gradients.begin(), gradients.begin() + static_cast<long>(end), run.gradients.begin()));
  }
  // The last one is all of them: what is left is padding.
  for (const ParameterSlice& slice : run.layout.slices())
    if (slice.offset < run.layout.trained()) CHECK(slice.offset + slice.elements() <= before);
  // And not everything was there before everything was ready.
  CHECK(ready.front().first < before);
}

DEVICE_TEST_CASE("a run writes the gradient of everything that is trained, and nothing else") {
  PlanRun run(device);
  run.run();
  Values expected(run.gradients.size(), PlanRun::kUntouched);
  for (const ParameterSlice& slice : run.layout.slices()) {
    if (slice.offset >= run.layout.with_gradient()) continue;
    for (int64_t i = 0; i < slice.elements(); ++i) expected[static_cast<size_t>(slice.offset + i)] = 0;
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(i);
    CHECK((run.gradients[i] == PlanRun::kUntouched) == (expected[i] == PlanRun::kUntouched));
    CHECK(!std::isnan(run.gradients[i]));
  }
  for (const char* name : {"kernel", "bias"}) {
    const Values none = run.gradient("apart", name);
    CHECK(none == Values(none.size()));
    const Values some = run.gradient("classes", name);
    CHECK(some != Values(some.size()));
  }
}

DEVICE_TEST_CASE("the loss scale multiplies gradients, and not statistics") {
  PlanRun run(device);
  run.run();
  const Values plain = run.gradients;
  const double total = run.total;
  run.run({.seed = 1, .first_sample = 0, .global_batch = kBatch}, 8);
  CHECK(run.total == doctest::Approx(total));
  for (int64_t i = 0; i < run.layout.with_gradient(); ++i) {
    const float found = run.gradients[static_cast<size_t>(i)], one = plain[static_cast<size_t>(i)];
    if (one == PlanRun::kUntouched) continue;
    CAPTURE(i);
    // A power of two: little is rounded otherwise.
    const double expected =
        i < run.layout.trained() ? 8.0 * static_cast<double>(one) : static_cast<double>(one);
    CHECK(std::abs(static_cast<double>(found) - expected) <= 1e-3 + 1e-3 * std::abs(expected));
  }
}

DEVICE_TEST_CASE("gradients and statistics are a piece's share of the global batch's") {
  PlanRun run(device);
  run.run();
  const Values whole = run.gradients;
  run.run({.seed = 1, .first_sample = 0, .global_batch = 2 * kBatch});
  for (const auto& [layer, name] : {std::pair("classes", "kernel"), std::pair("normal", "moving_mean")}) {
    const ParameterSlice& slice = run.slice(layer, name);
    const Values half = run.gradient(layer, name);
    for (size_t i = 0; i < half.size(); ++i) {
      const double expected = 0.5 * static_cast<double>(whole[static_cast<size_t>(slice.offset) + i]);
      CHECK(std::abs(static_cast<double>(half[i]) - expected) <= device.tolerance(1e-6));
    }
  }
}

DEVICE_TEST_CASE("a plan's gradients are those of its loss") {
  // Differences need more digits than the others have.
  if (device.math.type != ComputeType::float32 || device.math.tf32) return;
  PlanRun run(device);
  run.run();
  const Values gradients = run.gradients;
  const auto loss_with = [&](size_t i, float value) {
    const float before = run.values[i];
    run.values[i] = value;
    run.run();
    run.values[i] = before;
    return run.total / kBatch;
  };
  for (const ParameterSlice& slice : run.layout.slices()) {
    if (slice.offset >= run.layout.trained()) continue;
    INFO(slice.layer << "/" << slice.name);
    for (int64_t e = 0; e < slice.elements(); e += slice.elements() / 3 + 1) {
      const auto i = static_cast<size_t>(slice.offset + e);
      const float x = run.values[i], above = x + 1e-2f, below = x - 1e-2f;
      const double slope = (loss_with(i, above) - loss_with(i, below)) / (static_cast<double>(above) - below);
      CAPTURE(e);
      CHECK(std::abs(gradients[i] - slope) <= 1e-3 + 1e-2 * std::abs(slope));
    }
  }
}

}  // namespace dtrain
