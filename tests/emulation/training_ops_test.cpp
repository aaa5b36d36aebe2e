// The GPU's losses, metrics and optimizers against the CPU's.
#include <cmath>
#include <vector>

#include <doctest/doctest.h>

#include "emulation/sides.h"

namespace dtrain::emulation {
namespace {

constexpr std::pair<int64_t, int64_t> kRows[] = {{1, 1}, {3, 10}, {5, 33}, {2, 1024}, {300, 7}};

/// Rows that sum to 1.
Floats probabilities(int64_t rows, int64_t columns, uint64_t seed) {
  Floats values = random_floats(rows * columns, seed, 3);
  for (int64_t r = 0; r < rows; ++r) {
    float* row = values.data() + r * columns;
    float sum = 0;
    for (int64_t c = 0; c < columns; ++c) sum += row[c] = std::exp(row[c]);
    for (int64_t c = 0; c < columns; ++c) row[c] /= sum;
  }
  return values;
}

std::vector<int32_t> classes(int64_t rows, int64_t columns) {
  std::vector<int32_t> labels(static_cast<size_t>(rows));
  for (size_t i = 0; i < labels.size(); ++i)
    labels[i] = static_cast<int32_t>(static_cast<int64_t>(i) * 7 % columns);
  return labels;
}

}  // namespace

TEST_CASE("emulated ops: cross entropy") {
  for (const auto& [rows, columns] : kRows) {
    for (int variant = 0; variant < 4; ++variant) {
      const CrossEntropySpec spec{(variant & 1) != 0, (variant & 2) != 0};
      CAPTURE(rows);
      CAPTURE(columns);
      CAPTURE(variant);
      compare(
          [&, rows = rows, columns = columns](Side& side) {
            const int64_t n = rows * columns;
            const void* prediction =
                side.values(spec.from_logits ? random_floats(n, 1, 3) : probabilities(rows, columns, 1));
            View target;
            if (spec.sparse)
              target = {side.raw(classes(rows, columns)), {rows}, DType::int32};
            else
              target = {side.f32(probabilities(rows, columns, 2)), {rows, columns}};
            const float* loss_scale = side.f32({8});
            double* total = side.f64({3}, true);
            side.ops().cross_entropy_loss(spec, prediction, target, 0.25f, loss_scale, side.out(n), total,
                                          rows, columns);
            side.ops().cross_entropy_loss(spec, prediction, target, 0.25f, nullptr, nullptr, total, rows,
                                          columns);
          },
          {.tolerance = 5e-5f, .rounding = 4});
    }
  }
}

TEST_CASE("emulated ops: losses of elements") {
  using Kind = ElementwiseLossSpec::Kind;
  for (const ElementwiseLossSpec& spec : {ElementwiseLossSpec{Kind::binary_crossentropy, true, 1},
                                          ElementwiseLossSpec{Kind::binary_crossentropy, false, 1},
                                          ElementwiseLossSpec{Kind::mean_squared_error, false, 1},
                                          ElementwiseLossSpec{Kind::mean_absolute_error, false, 1},
                                          ElementwiseLossSpec{Kind::huber, false, 0.4f}}) {
    for (const auto& [rows, columns] : kRows) {
      CAPTURE(static_cast<int>(spec.kind));
      CAPTURE(rows);
      CAPTURE(columns);
      compare(
          [&, rows = rows, columns = columns](Side& side) {
            const int64_t n = rows * columns;
            const bool probable = spec.kind == Kind::binary_crossentropy && !spec.from_logits;
            Floats predicted = random_floats(n, 1, probable ? 0.45f : 1);
            if (probable)
              for (float& p : predicted) p += 0.5f;
            Floats wanted = random_floats(n, 2);
            for (float& t : wanted) t = t > 0 ? 1.0f : 0.0f;
            double* total = side.f64({-1}, true);
            const void* prediction = side.values(predicted);
            const float* target = side.f32(wanted);
            side.ops().elementwise_loss(spec, prediction, target, 0.5f, side.f32({4}), side.out(n), total,
                                        rows, columns);
            side.ops().elementwise_loss(spec, prediction, target, 0.5f, nullptr, nullptr, total, rows,
                                        columns);
          },
          {.tolerance = 5e-5f, .rounding = 4});
    }
  }
}

TEST_CASE("emulated ops: metrics") {
  using Kind = MetricSpec::Kind;
  for (const MetricSpec& spec :
       {MetricSpec{Kind::sparse_top_k, 1, 0}, MetricSpec{Kind::sparse_top_k, 3, 0},
        MetricSpec{Kind::categorical_top_k, 1, 0}, MetricSpec{Kind::binary_accuracy, 1, 0.4f},
        MetricSpec{Kind::mean_absolute_error, 1, 0}}) {
    for (const auto& [rows, columns] : kRows) {
      CAPTURE(static_cast<int>(spec.kind));
      CAPTURE(rows);
      CAPTURE(columns);
      compare(
          [&, rows = rows, columns = columns](Side& side) {
            const int64_t n = rows * columns;
            Floats wanted = random_floats(n, 2);
            if (spec.kind == Kind::binary_accuracy)
              for (float& t : wanted) t = t > 0 ? 1.0f : 0.0f;
            View target{nullptr, {rows, columns}};
            if (spec.kind == Kind::sparse_top_k)
              target = {side.raw(classes(rows, columns)), {rows}, DType::int32};
            else
              target.data = side.f32(wanted);
            side.ops().metric(spec, side.values(random_floats(n, 1)), target, side.f64({2}, true), rows,
                              columns);
          },
          {.tolerance = 2e-5f});
    }
  }
}

TEST_CASE("emulated ops: sums of squares, and what a gradient is worth") {
  for (const int64_t n : {1, 100, 5000, 70001}) {
    for (const float norm : {0.0f, 0.5f, 1e6f}) {
      for (const float overflow : {0.0f, INFINITY}) {
        CAPTURE(n);
        CAPTURE(norm);
        compare(
            [&](Side& side) {
              Floats gradient = random_floats(n, 1);
              gradient[static_cast<size_t>(n / 2)] += overflow;
              double* squares = side.f64({-1}, true);
              side.ops().sum_of_squares(side.f32(gradient), squares, n);
              for (const bool dynamic : {false, true}) {
                StepState state;
                state.gradient = {4, 0.25f, GradientRule::kGrowthSteps - 1, 0};
                StepState* on_device = side.raw(std::vector<StepState>{state});
                side.ops().settle_gradient({norm, dynamic}, squares, on_device);
                float* seen = side.out_f32(2);
                side.ops().scale_add(seen, &on_device->gradient.loss_scale, 1, 0, 2);
                // Counters, as they are.
                int32_t* counters = side.raw(std::vector<int32_t>(2));
                side.ops().context().synchronize();
                side.ops().context().copy_to_host(&state, on_device, sizeof state);
                (void)counters;
                side.f32(
                    {static_cast<float>(state.gradient.good_steps), static_cast<float>(state.gradient.skip)},
                    true);
              }
            },
            {.shifts = {0}});
      }
    }
  }
}

TEST_CASE("emulated ops: optimizers") {
  const std::vector<std::pair<OptimizerRule, int>> rules = {
      {SgdRule{0, false}, 0},
      {SgdRule{0.9f, false}, 1},
      {SgdRule{0.9f, true}, 1},
      {RmspropRule{0.9f, 0, 1e-7f, false}, 1},
      {RmspropRule{0.9f, 0.5f, 1e-7f, false}, 2},
      {RmspropRule{0.9f, 0, 1e-3f, true}, 2},
      {RmspropRule{0.9f, 0.5f, 1e-3f, true}, 3},
      {AdagradRule{1e-7f}, 1},
      {AdamRule{0.9f, 0.999f, 1e-7f}, 2},
      {MovingAverageRule{0.99f}, 0},
  };
  for (const auto& [rule, count] : rules) {
    CAPTURE(rule.index());
    for (const int64_t n : {1, 77, 4096}) {
      for (const bool skip : {false, true}) {
        compare(
            [&, rule = rule, count = count](Side& side) {
              StepState state;
              state.now = {3, 0.01f, 0.001f};
              state.gradient.gradient_scale = 0.5f;
              state.gradient.skip = skip;
              const StepState* on_device = side.raw(std::vector<StepState>{state});
              std::vector<float*> slots;
              for (int i = 0; i < count; ++i) {
                Floats slot = random_floats(n, static_cast<uint64_t>(i) + 10);
                if (i == 0)
                  for (float& x : slot) x = 1 + std::abs(x);
                slots.push_back(side.f32(slot, true));
              }
              float* weights = side.f32(random_floats(n, 1), true);
              const float* gradient = side.f32(random_floats(n, 2));
              side.ops().update(rule, on_device, weights, gradient, slots, nullptr, n);
              // The copy where nothing moves is what it was; both sides begin with the same.
              void* copy = side.values(random_floats(n, 3), !skip);
              side.ops().update(rule, on_device, weights, gradient, slots, copy, n);
            },
            {.rounding = 1});
      }
    }
  }
}

}  // namespace dtrain::emulation
