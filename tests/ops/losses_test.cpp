#include <limits>

#include <doctest/doctest.h>

#include "ops/fixture.h"

namespace dtrain::test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Extent {
  int64_t rows, columns;
};
constexpr Extent kExtents[] = {{1, 1}, {1, 5}, {64, 10}, {7, 100}, {1000, 17}, {3, 3000}};

size_t elements(const Extent& extent) {
  return static_cast<size_t>(extent.rows * extent.columns);
}

View view_of(const Array<int32_t>& classes, int64_t rows) {
  return {classes.data(), {rows}, DType::int32, Layout::plain};
}
View view_of(const Array<float>& values, const Extent& extent) {
  return {values.data(), {extent.rows, extent.columns}, DType::float32, Layout::plain};
}

/// What an operation adds to a total that was `before`.
template <class Run>
double added(const Device& device, Run&& run) {
  constexpr double kBefore = -2;
  const auto total = device.array(Doubles{kBefore});
  run(total.data());
  return total.read()[0] - kBefore;
}

/// Rows that are distributions.
Floats distributions(const Extent& extent, uint64_t seed) {
  Floats values = random_floats(extent.rows * extent.columns, seed);
  for (int64_t r = 0; r < extent.rows; ++r) {
    float* row = values.data() + r * extent.columns;
    float total = 0;
    for (int64_t c = 0; c < extent.columns; ++c) total += row[c] = std::abs(row[c]) + 0.01f;
    for (int64_t c = 0; c < extent.columns; ++c) row[c] /= total;
  }
  return values;
}

double clipped(double p) {
  return std::min(std::max(p, 1e-7), 1 - 1e-7);
}

/// The loss of one row in double precision.
double cross_entropy(const CrossEntropySpec& spec, const double* x, const double* t, int64_t n) {
  double most = x[0], total = 0, loss = 0;
  for (int64_t c = 0; c < n; ++c) most = std::max(most, x[c]);
  for (int64_t c = 0; c < n; ++c) total += std::exp(x[c] - most);
  for (int64_t c = 0; c < n; ++c) {
    loss -=
        t[c] == 0 ? 0 : t[c] * (spec.from_logits ? x[c] - most - std::log(total) : std::log(clipped(x[c])));
  }
  return loss;
}

double elementwise(const ElementwiseLossSpec& spec, double p, double t) {
  const double e = std::abs(p - t), delta = static_cast<double>(spec.delta);
  switch (spec.kind) {
    case ElementwiseLossSpec::Kind::binary_crossentropy:
      if (spec.from_logits) return std::max(p, 0.0) - p * t + std::log1p(std::exp(-std::abs(p)));
      return -t * std::log(clipped(p)) - (1 - t) * std::log(1 - clipped(p));
    case ElementwiseLossSpec::Kind::mean_squared_error:
      return e * e;
    case ElementwiseLossSpec::Kind::mean_absolute_error:
      return e;
    case ElementwiseLossSpec::Kind::huber:
      return e <= delta ? 0.5 * e * e : delta * e - 0.5 * delta * delta;
  }
  return 0;
}

const ElementwiseLossSpec kLosses[] = {
    {ElementwiseLossSpec::Kind::binary_crossentropy, true, 1},
    {ElementwiseLossSpec::Kind::binary_crossentropy, false, 1},
    {ElementwiseLossSpec::Kind::mean_squared_error, false, 1},
    {ElementwiseLossSpec::Kind::mean_absolute_error, false, 1},
    {ElementwiseLossSpec::Kind::huber, false, 0.25f},
};

}  // namespace

namespace {

struct CrossEntropyCase {
  CrossEntropySpec spec;
  Extent extent;
  Floats x;
  std::vector<int32_t> classes;
  Floats target;  // where it is not sparse
};

CrossEntropyCase case_of(const Device& device, const CrossEntropySpec& spec, const Extent& extent) {
  CrossEntropyCase c{spec, extent, {}, {}, distributions(extent, 2)};
  c.x = spec.from_logits ? random_floats(extent.rows * extent.columns, 1, 10) : distributions(extent, 1);
  if (spec.from_logits && extent.columns > 4) c.x[1] = 100, c.x[2] = -100;
  c.x = device.kept(c.x);
  for (int64_t r = 0; r < extent.rows; ++r) c.classes.push_back(static_cast<int32_t>(r * 7 % extent.columns));
  return c;
}

constexpr int64_t kMostColumns = 40;  // whose gradients are looked at

struct Expected {
  double total = 0;
  Doubles gradient;  // of each row's first columns; 0 beyond them
};

Expected expected_of(const CrossEntropyCase& c, double scale) {
  const int64_t columns = c.extent.columns;
  Doubles x = doubles_of(c.x), t = doubles_of(c.target);
  Expected expected{0, Doubles(x.size())};
  for (int64_t r = 0; r < c.extent.rows; ++r) {
    const auto at = static_cast<size_t>(r * columns);
    for (int64_t k = 0; c.spec.sparse && k < columns; ++k) {
      t[at + static_cast<size_t>(k)] = k == c.classes[static_cast<size_t>(r)];
    }
    const auto loss = [&] { return cross_entropy(c.spec, x.data() + at, t.data() + at, columns); };
    expected.total += loss();
    for (int64_t k = 0; k < std::min(columns, kMostColumns); ++k) {
      double& moved = x[at + static_cast<size_t>(k)];
      const double before = moved, step = c.spec.from_logits ? 1e-6 : 1e-6 * before;
      moved = before + step;
      const double above = loss();
      moved = before - step;
      const double below = loss();
      moved = before;
      expected.gradient[at + static_cast<size_t>(k)] = scale * (above - below) / (2 * step);
    }
  }
  return expected;
}

/// The same columns.
Floats first_columns(Floats diff, const Extent& extent) {
  for (size_t i = 0; i < diff.size(); ++i)
    if (static_cast<int64_t>(i) % extent.columns >= kMostColumns) diff[i] = 0;
  return diff;
}

}  // namespace

DEVICE_TEST_CASE("cross entropy and its gradient") {
  const auto loss_scale = device.array(Floats{4});
  for (const Extent& extent : kExtents) {
    for (const int variant : {0, 1, 2, 3}) {
      const CrossEntropySpec spec{(variant & 1) != 0, (variant & 2) != 0};
      CAPTURE(spec.sparse);
      CAPTURE(spec.from_logits);
      CAPTURE(extent.columns);
      const CrossEntropyCase c = case_of(device, spec, extent);
      const TypedArray x = device.typed(c.x), diff = device.typed(c.x.size());
      const auto target = device.array(c.target);
      const auto classes = device.array(c.classes);
      const View view = spec.sparse ? view_of(classes, extent.rows) : view_of(target, extent);
      const auto run = [&](float scale, const float* times, void* to) {
        return added(device, [&](double* total) {
          device.ops().cross_entropy_loss(spec, x.data(), view, scale, times, to, total, extent.rows,
                                          extent.columns);
        });
      };
      const Expected expected = expected_of(c, 0.5);
      CHECK(run(0.5f, nullptr, diff.data()) == doctest::Approx(expected.total).epsilon(2e-6));
      const Floats plain = diff.read();
      if (spec.from_logits || extent.columns > 1)  // a single class's probability stands at the clip
        check_close(first_columns(plain, extent), expected.gradient, device.tolerance(2e-5));
      CHECK(run(0.125f, loss_scale.data(), diff.data()) == doctest::Approx(expected.total).epsilon(2e-6));
      CHECK(diff.read() == plain);
      CHECK(run(0.5f, nullptr, nullptr) == doctest::Approx(expected.total).epsilon(2e-6));
    }
  }
}

DEVICE_TEST_CASE("classes out of range and predictions that are no numbers make the loss NaN") {
  Ops& ops = device.ops();
  for (const bool logits : {true, false}) {
    CAPTURE(logits);
    const TypedArray two_rows = device.typed(device.kept({0.2f, 0.3f, 0.5f, 0.1f, 0.1f, 0.8f}));
    for (const int32_t wrong : {-1, 3}) {
      const TypedArray diff = device.typed(6);
      const auto classes = device.array(std::vector<int32_t>{1, wrong});
      CHECK(std::isnan(added(device, [&](double* total) {
        ops.cross_entropy_loss({true, logits}, two_rows.data(), view_of(classes, 2), 1, nullptr, diff.data(),
                               total, 2, 3);
      })));
      const Floats found = diff.read();
      for (size_t i = 0; i < 6; ++i) CHECK(std::isnan(found[i]) == (i >= 3));
    }
    const TypedArray x = device.typed(Floats{0.2f, kNan, 0.5f});
    const auto target = device.array(Floats{0.2f, 0.4f, 0.4f});
    const auto classes = device.array(std::vector<int32_t>{1});
    for (const bool sparse : {true, false}) {
      const View view = sparse ? view_of(classes, 1) : view_of(target, {1, 3});
      CHECK(std::isnan(added(device, [&](double* total) {
        ops.cross_entropy_loss({sparse, logits}, x.data(), view, 1, nullptr, nullptr, total, 1, 3);
      })));
    }
  }
  for (const ElementwiseLossSpec& spec : kLosses) {
    CAPTURE(static_cast<int>(spec.kind));
    Floats x(20, 0.5f);
    x[13] = kNan;
    const TypedArray own_x = device.typed(x), diff = device.typed(Floats(20));
    const auto target = device.array(Floats(20, 1));
    CHECK(std::isnan(added(device, [&](double* total) {
      ops.elementwise_loss(spec, own_x.data(), target.data(), 1, nullptr, diff.data(), total, 4, 5);
    })));
    const Floats found = diff.read();
    for (size_t i = 0; i < 20; ++i) CHECK(std::isnan(found[i]) == (i == 13));
  }
}

DEVICE_TEST_CASE("elementwise losses and their gradients") {
  const auto loss_scale = device.array(Floats{8});
  for (const Extent& extent : kExtents) {
    device.shift = extent.rows % 2 ? 1 : 0;
    for (const ElementwiseLossSpec& spec : kLosses) {
      CAPTURE(static_cast<int>(spec.kind));
      CAPTURE(extent.columns);
      const bool crosses = spec.kind == ElementwiseLossSpec::Kind::binary_crossentropy;
      const bool probability = crosses && !spec.from_logits;
      Floats x = random_floats(extent.rows * extent.columns, 1),
             target = random_floats(extent.rows * extent.columns, 2);
      for (float& value : x) value = probability ? 0.5f + 0.49f * value : 3 * value;
      for (float& value : target) value = crosses ? value > 0 : value;
      if (!probability && elements(extent) > 3) x[1] = 100, x[2] = -100;
      x = device.kept(x);
      Doubles gradient(x.size());
      double expected = 0;
      for (size_t i = 0; i < x.size(); ++i) {
        const double p = static_cast<double>(x[i]), t = static_cast<double>(target[i]), step = 1e-7;
        expected += elementwise(spec, p, t) / static_cast<double>(extent.columns);
        gradient[i] = 2 * (elementwise(spec, p + step, t) - elementwise(spec, p - step, t)) / (2 * step) /
                      static_cast<double>(extent.columns);
      }
      const TypedArray own_x = device.typed(x), diff = device.typed(x.size());
      const auto own_target = device.array(target);
      const auto run = [&](float scale, const float* times, void* to) {
        return added(device, [&](double* total) {
          device.ops().elementwise_loss(spec, own_x.data(), own_target.data(), scale, times, to, total,
                                        extent.rows, extent.columns);
        });
      };
      CHECK(run(2, nullptr, diff.data()) == doctest::Approx(expected).epsilon(2e-6));
      const Floats plain = diff.read();
      check_close(plain, gradient, device.tolerance(1e-5));
      CHECK(run(0.25f, loss_scale.data(), diff.data()) == doctest::Approx(expected).epsilon(2e-6));
      CHECK(diff.read() == plain);
      CHECK(run(2, nullptr, nullptr) == doctest::Approx(expected).epsilon(2e-6));
    }
  }
}

DEVICE_TEST_CASE("probabilities at the bounds stay finite") {
  const TypedArray x = device.typed(Floats{0, 1, 0, 1}), diff = device.typed(4);
  const auto target = device.array(Floats{1, 0, 0, 1});
  const double total = added(device, [&](double* to) {
    device.ops().elementwise_loss({ElementwiseLossSpec::Kind::binary_crossentropy, false, 1}, x.data(),
                                  target.data(), 1, nullptr, diff.data(), to, 4, 1);
  });
  CHECK(total == doctest::Approx(-std::log(1e-7) - std::log(1.1920929e-7)).epsilon(1e-5));
  CHECK(diff.read() == Floats(4, 0));
}

DEVICE_TEST_CASE("metrics") {
  using Kind = MetricSpec::Kind;
  const auto sparse = [&](const MetricSpec& spec, const Floats& x, const std::vector<int32_t>& classes) {
    const TypedArray own_x = device.typed(x);
    const auto own = device.array(classes);
    const auto rows = static_cast<int64_t>(classes.size()), columns = static_cast<int64_t>(x.size()) / rows;
    return added(device, [&](double* total) {
      device.ops().metric(spec, own_x.data(), view_of(own, rows), total, rows, columns);
    });
  };
  const auto dense = [&](const MetricSpec& spec, const Floats& x, const Floats& target,
                         const Extent& extent) {
    const TypedArray own_x = device.typed(x);
    const auto own = device.array(target);
    return added(device, [&](double* total) {
      device.ops().metric(spec, own_x.data(), view_of(own, extent), total, extent.rows, extent.columns);
    });
  };
  const Floats x{0.1f, 0.7f, 0.2f, 0.4f, 0.4f, 0.2f, 0.3f, 0.3f, 0.4f, kNan, 0.1f, 0.2f};
  CHECK(sparse({Kind::sparse_top_k, 1, 0}, x, {1, 1, 0, 0}) == 1);
  CHECK(sparse({Kind::sparse_top_k, 2, 0}, x, {1, 1, 0, 0}) == 3);
  CHECK(sparse({Kind::sparse_top_k, 3, 0}, x, {1, 1, 0, 0}) == 3);
  CHECK(sparse({Kind::sparse_top_k, 1, 0}, x, {-1, 3, 2, 2}) == 2);
  const Floats one_hot{0, 1, 0, 1, 0, 0, 0, 0, 1, 0, 0, 1};
  CHECK(dense({Kind::categorical_top_k, 1, 0}, x, one_hot, {4, 3}) == 4);
  // Numbers that every type holds.
  const Floats scores{0.25f, 0.625f, 0.5f, 0.875f, 0.375f, 0.125f}, labels{0, 1, 1, 1, 1, 0};
  CHECK(dense({Kind::binary_accuracy, 1, 0.5f}, scores, labels, {2, 3}) == doctest::Approx(4.0 / 3));
  CHECK(dense({Kind::mean_absolute_error, 1, 0}, scores, labels, {2, 3}) ==
        doctest::Approx((0.25 + 0.375 + 0.5 + 0.125 + 0.625 + 0.125) / 3));
  const Extent large{1000, 100};
  const Floats many = device.random(large.rows * large.columns, 5);
  std::vector<int32_t> best;
  for (int64_t r = 0; r < large.rows; ++r) {
    const float* row = many.data() + r * large.columns;
    best.push_back(static_cast<int32_t>(std::max_element(row, row + large.columns) - row));
    if (r % 4 == 0) best.back() = (best.back() + 1) % 100;
  }
  CHECK(sparse({Kind::sparse_top_k, 1, 0}, many, best) == 750);
}

}  // namespace dtrain::test
