// Tests whole plans: their gradients, the calls that report ready gradients, and the effect of the parameters
// of a step.
#include "plan_run.h"

namespace dtrain::test {

DEVICE_TEST_CASE(
    "gradients that are reported as ready are final, and grow from the start of the layout to its end") {
  PlanRun run(device);
  std::vector<std::pair<int64_t, Values>> ready;
  run.run({.seed = 1, .first_sample = 0, .global_batch = kBatch}, 1,
          [&](int64_t end, const Values& gradients) { ready.emplace_back(end, gradients); });
  // The dense layers, the normalizations and the first convolution report their gradients, at least.
  CHECK(ready.size() >= 5);
  int64_t before = 0;
  for (const auto& [until, gradients] : ready) {
    const int64_t end = until;
    CAPTURE(end);
    CHECK(end > before);
    before = end;
    CHECK(end <= run.layout.trained());
    CHECK(std::equal(gradients.begin(), gradients.begin() + static_cast<long>(end), run.gradients.begin()));
  }
  // The last call covers all gradients; the rest of the buffer is padding.
  for (const ParameterSlice& slice : run.layout.slices())
    if (slice.offset < run.layout.trained()) CHECK(slice.offset + slice.elements() <= before);
  // The first call does not cover all gradients.
  CHECK(ready.front().first < before);
}

DEVICE_TEST_CASE("a run writes the gradients of all trained parameters and nothing else") {
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

DEVICE_TEST_CASE("the loss scale multiplies gradients, but not statistics") {
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
    // The loss scale is a power of two. Therefore, the scaled gradients have nearly the same rounding errors.
    const double expected =
        i < run.layout.trained() ? 8.0 * static_cast<double>(one) : static_cast<double>(one);
    CHECK(std::abs(static_cast<double>(found) - expected) <= 1e-3 + 1e-3 * std::abs(expected));
  }
}

DEVICE_TEST_CASE("gradients and statistics of a microbatch are scaled by its share of the global batch") {
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

DEVICE_TEST_CASE("a normalization computes the sum that is its only reader, on devices that support it") {
  const std::string model = R"(
inputs: {image: [6, 6, 3]}
layers:
  - conv2d: {name: first, filters: 8, kernel_size: 3, padding: same}
  - batch_normalization: {name: short, inputs: first}
  - conv2d: {name: second, filters: 8, kernel_size: 3, padding: same, inputs: first}
  - batch_normalization: {name: long}
  - add: {name: sum, inputs: [short, long]}
  - activation: {name: block, activation: relu}
  - batch_normalization: {name: again}
  - add: {name: through, inputs: [block, again]}
  - flatten: {}
  - dense: {name: classes, units: 5}
outputs: )";
  PlanRun together(device, model + "[classes]");
  // A value that is also an output has to be written.
  PlanRun apart(device, model + "[classes, short, long, again]");
  const bool adds = device.ops().adds_in_normalization();
  CHECK(together.plan.program().instructions.size() ==
        apart.plan.program().instructions.size() - (adds ? 2 : 0));
  together.run();
  apart.run();
  // With 16-bit types, values that are never written to memory are not rounded.
  CHECK(together.total == doctest::Approx(apart.total).epsilon(0.05));
  if (device.math.type != DType::float32) return;
  CHECK(together.total == apart.total);
  CHECK(together.gradients == apart.gradients);
}

DEVICE_TEST_CASE("a plan's gradients match finite differences of its loss") {
  // Finite differences need the precision of float32.
  if (device.math.type != DType::float32 || device.math.tf32) return;
  PlanRun run(device);
  run.check_slopes();
}

}  // namespace dtrain::test
