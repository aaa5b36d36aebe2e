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

View view_of(std::vector<int32_t>& values) {
  return {values.data(), {static_cast<int64_t>(values.size())}, DType::int32, Layout::plain};
}
View view_of(Floats& values, const Extent& extent) {
  return {values.data(), {extent.rows, extent.columns}, DType::float32, Layout::plain};
}

/// Rows that are distributions; every fifth element of `zeros` rows is 0.
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

TEST_CASE("cross entropy and its gradient") {
  on_every_cpu([](cpu::CpuOps& ops) {
    for (const Extent& extent : kExtents) {
      for (const int variant : {0, 1, 2, 3}) {
        const CrossEntropySpec spec{(variant & 1) != 0, (variant & 2) != 0};
        CAPTURE(spec.sparse);
        CAPTURE(spec.from_logits);
        Floats x =
            spec.from_logits ? random_floats(extent.rows * extent.columns, 1, 10) : distributions(extent, 1);
        if (spec.from_logits && extent.columns > 4) x[1] = 100, x[2] = -100;
        Floats target = distributions(extent, 2);
        std::vector<int32_t> classes;
        for (int64_t r = 0; r < extent.rows; ++r)
          classes.push_back(static_cast<int32_t>(r * 7 % extent.columns));
        Doubles wide = doubles_of(x), t = doubles_of(target), gradient(x.size());
        double expected = 0;
        for (int64_t r = 0; r < extent.rows; ++r) {
          const int64_t at = r * extent.columns;
          for (int64_t c = 0; spec.sparse && c < extent.columns; ++c) {
            t[static_cast<size_t>(at + c)] = c == classes[static_cast<size_t>(r)];
          }
          expected += cross_entropy(spec, wide.data() + at, t.data() + at, extent.columns);
          for (int64_t c = 0; c < std::min<int64_t>(extent.columns, 40); ++c) {
            double& moved = wide[static_cast<size_t>(at + c)];
            const double before = moved, step = spec.from_logits ? 1e-6 : 1e-6 * before;
            moved = before + step;
            const double above = cross_entropy(spec, wide.data() + at, t.data() + at, extent.columns);
            moved = before - step;
            const double below = cross_entropy(spec, wide.data() + at, t.data() + at, extent.columns);
            moved = before;
            gradient[static_cast<size_t>(at + c)] = 0.5 * (above - below) / (2 * step);
          }
        }
        Floats diff(x.size());
        double total = 1;
        const View view = spec.sparse ? view_of(classes) : view_of(target, extent);
        ops.cross_entropy_loss(spec, x.data(), view, 0.5f, diff.data(), &total, extent.rows, extent.columns);
        CHECK(total - 1 == doctest::Approx(expected).epsilon(2e-6));
        if (spec.from_logits || extent.columns > 1) {  // a single class's probability stands at the clip
          for (int64_t r = 0; r < extent.rows; ++r) {
            const auto first = static_cast<size_t>(r * extent.columns);
            const size_t n = static_cast<size_t>(std::min<int64_t>(extent.columns, 40));
            check_close(
                Floats(diff.begin() + static_cast<long>(first), diff.begin() + static_cast<long>(first + n)),
                Doubles(gradient.begin() + static_cast<long>(first),
                        gradient.begin() + static_cast<long>(first + n)),
                2e-5);
          }
        }
        double alone = 1;
        ops.cross_entropy_loss(spec, x.data(), view, 0.5f, nullptr, &alone, extent.rows, extent.columns);
        CHECK(alone == doctest::Approx(total).epsilon(1e-6));
      }
    }
  });
}

TEST_CASE("classes out of range and predictions that are no numbers make the loss NaN") {
  on_every_cpu([](cpu::CpuOps& ops) {
    for (const bool logits : {true, false}) {
      for (const int32_t wrong : {-1, 3}) {
        Floats x{0.2f, 0.3f, 0.5f, 0.1f, 0.1f, 0.8f}, diff(6);
        std::vector<int32_t> classes{1, wrong};
        double total = 0;
        ops.cross_entropy_loss({true, logits}, x.data(), view_of(classes), 1, diff.data(), &total, 2, 3);
        CHECK(std::isnan(total));
        for (size_t i = 0; i < 6; ++i) CHECK(std::isnan(diff[i]) == (i >= 3));
      }
      Floats x{0.2f, kNan, 0.5f}, target{0.2f, 0.4f, 0.4f};
      std::vector<int32_t> classes{1};
      double sparse = 0, dense = 0;
      ops.cross_entropy_loss({true, logits}, x.data(), view_of(classes), 1, nullptr, &sparse, 1, 3);
      ops.cross_entropy_loss({false, logits}, x.data(), view_of(target, {1, 3}), 1, nullptr, &dense, 1, 3);
      CHECK(std::isnan(sparse));
      CHECK(std::isnan(dense));
    }
    for (const ElementwiseLossSpec& spec : kLosses) {
      Floats x(20, 0.5f), target(20, 1), diff(20);
      x[13] = kNan;
      double total = 0;
      ops.elementwise_loss(spec, x.data(), target.data(), 1, diff.data(), &total, 4, 5);
      CHECK(std::isnan(total));
      for (size_t i = 0; i < 20; ++i) CHECK(std::isnan(diff[i]) == (i == 13));
    }
  });
}

TEST_CASE("elementwise losses and their gradients") {
  on_every_cpu([](cpu::CpuOps& ops) {
    for (const Extent& extent : kExtents) {
      for (const ElementwiseLossSpec& spec : kLosses) {
        CAPTURE(static_cast<int>(spec.kind));
        const bool probability =
            spec.kind == ElementwiseLossSpec::Kind::binary_crossentropy && !spec.from_logits;
        Floats x = random_floats(extent.rows * extent.columns, 1),
               target = random_floats(extent.rows * extent.columns, 2);
        for (float& value : x) value = probability ? 0.5f + 0.49f * value : 3 * value;
        for (float& value : target)
          value = spec.kind == ElementwiseLossSpec::Kind::binary_crossentropy ? value > 0 : value;
        if (!probability && elements(extent) > 3) x[1] = 100, x[2] = -100;
        Doubles gradient(x.size());
        double expected = 0;
        for (size_t i = 0; i < x.size(); ++i) {
          const double p = static_cast<double>(x[i]), t = static_cast<double>(target[i]), step = 1e-7;
          expected += elementwise(spec, p, t) / static_cast<double>(extent.columns);
          gradient[i] = 2 * (elementwise(spec, p + step, t) - elementwise(spec, p - step, t)) / (2 * step) /
                        static_cast<double>(extent.columns);
        }
        Floats diff(x.size());
        double total = -2;
        ops.elementwise_loss(spec, x.data(), target.data(), 2, diff.data(), &total, extent.rows,
                             extent.columns);
        CHECK(total + 2 == doctest::Approx(expected).epsilon(2e-6));
        check_close(diff, gradient, 1e-5);
      }
    }
  });
}

TEST_CASE("probabilities at the bounds stay finite") {
  on_every_cpu([](cpu::CpuOps& ops) {
    Floats x{0, 1, 0, 1}, target{1, 0, 0, 1}, diff(4);
    double total = 0;
    ops.elementwise_loss({ElementwiseLossSpec::Kind::binary_crossentropy, false, 1}, x.data(), target.data(),
                         1, diff.data(), &total, 4, 1);
    CHECK(total == doctest::Approx(-std::log(1e-7) - std::log(1.1920929e-7)).epsilon(1e-5));
    CHECK(diff == Floats(4, 0));
  });
}

TEST_CASE("metrics") {
  on_every_cpu([](cpu::CpuOps& ops) {
    using Kind = MetricSpec::Kind;
    const auto value = [&](const MetricSpec& spec, const Floats& x, const View& target, int64_t rows,
                           int64_t columns) {
      double total = 0;
      ops.metric(spec, x.data(), target, &total, rows, columns);
      return total;
    };
    const Floats x{0.1f, 0.7f, 0.2f, 0.4f, 0.4f, 0.2f, 0.3f, 0.3f, 0.4f, kNan, 0.1f, 0.2f};
    std::vector<int32_t> classes{1, 1, 0, 0};
    CHECK(value({Kind::sparse_top_k, 1, 0}, x, view_of(classes), 4, 3) == 1);
    CHECK(value({Kind::sparse_top_k, 2, 0}, x, view_of(classes), 4, 3) == 3);
    CHECK(value({Kind::sparse_top_k, 3, 0}, x, view_of(classes), 4, 3) == 3);
    std::vector<int32_t> wrong{-1, 3, 2, 2};
    CHECK(value({Kind::sparse_top_k, 1, 0}, x, view_of(wrong), 4, 3) == 2);
    Floats one_hot{0, 1, 0, 1, 0, 0, 0, 0, 1, 0, 0, 1};
    CHECK(value({Kind::categorical_top_k, 1, 0}, x, view_of(one_hot, {4, 3}), 4, 3) == 4);
    const Floats scores{0.2f, 0.6f, 0.5f, 0.9f, 0.4f, 0.1f};
    Floats labels{0, 1, 1, 1, 1, 0};
    CHECK(value({Kind::binary_accuracy, 1, 0.5f}, scores, view_of(labels, {2, 3}), 2, 3) ==
          doctest::Approx(4.0 / 3));
    CHECK(value({Kind::mean_absolute_error, 1, 0}, scores, view_of(labels, {2, 3}), 2, 3) ==
          doctest::Approx((0.2 + 0.4 + 0.5 + 0.1 + 0.6 + 0.1) / 3));
    const Extent large{1000, 100};
    Floats many = random_floats(large.rows * large.columns, 5);
    std::vector<int32_t> best;
    for (int64_t r = 0; r < large.rows; ++r) {
      const float* row = many.data() + r * large.columns;
      best.push_back(static_cast<int32_t>(std::max_element(row, row + large.columns) - row));
      if (r % 4 == 0) best.back() = (best.back() + 1) % 100;
    }
    CHECK(value({Kind::sparse_top_k, 1, 0}, many, view_of(best), large.rows, large.columns) == 750);
  });
}

}  // namespace dtrain::test
