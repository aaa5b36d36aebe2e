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

/// Weights of rows, a few of them 0; one for every `rows_per_weight` rows. None at all where `weighted` is
/// false.
struct Weights {
  Weights(const Device& device, int64_t count, int64_t rows_of_one, bool has_weights)
      : rows_per_weight(rows_of_one), weighted(has_weights) {
    for (int64_t i = 0; i < (count + rows_per_weight - 1) / rows_per_weight; ++i)
      values.push_back(weighted ? 0.5f * static_cast<float>(i % 5) : 1.0f);
    own = device.array(values);
  }
  RowWeights rows() const { return {weighted ? own.data() : nullptr, rows_per_weight}; }
  double of(int64_t row) const {
    return static_cast<double>(values[static_cast<size_t>(row / rows_per_weight)]);
  }

  int64_t rows_per_weight;
  bool weighted;
  Floats values;
  Array<float> own = {};
};

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
  const double smoothing = static_cast<double>(spec.label_smoothing);
  for (int64_t c = 0; c < n; ++c) {
    const double smoothed = (1 - smoothing) * t[c] + smoothing / static_cast<double>(n);
    const double log_q = spec.from_logits ? x[c] - most - std::log(total) : std::log(clipped(x[c]));
    loss -= smoothed == 0 ? 0 : smoothed * log_q;
  }
  return loss;
}

double elementwise(const ElementwiseLossSpec& spec, double p, double t) {
  using Kind = ElementwiseLossSpec::Kind;
  const double e = std::abs(p - t), delta = static_cast<double>(spec.delta);
  const double smoothing = static_cast<double>(spec.label_smoothing);
  t = (1 - smoothing) * t + smoothing / 2;  // of the cross-entropies alone
  const double sign = t == 0 ? -1 : t, q = spec.from_logits ? 1 / (1 + std::exp(-p)) : p;
  const auto cross = [&] {
    if (spec.from_logits) return std::max(p, 0.0) - p * t + std::log1p(std::exp(-std::abs(p)));
    return -t * std::log(clipped(p)) - (1 - t) * std::log(1 - clipped(p));
  };
  const auto bounded = [](double x) { return std::min(std::max(x, 1e-7), 1.0); };
  switch (spec.kind) {
    case Kind::binary_crossentropy:
      return cross();
    case Kind::binary_focal_crossentropy: {
      const double alpha = static_cast<double>(spec.alpha);
      return (spec.balances_classes ? t * alpha + (1 - t) * (1 - alpha) : 1) *
             std::pow(1 - t * q - (1 - t) * (1 - q), static_cast<double>(spec.gamma)) * cross();
    }
    case Kind::mean_absolute_percentage_error:
      return 100 * e / std::max(std::abs(t), 1e-7);
    case Kind::mean_squared_logarithmic_error:
      return std::pow(std::log(std::max(p, 1e-7) + 1) - std::log(std::max(t, 1e-7) + 1), 2);
    case Kind::hinge:
      return std::max(1 - sign * p, 0.0);
    case Kind::squared_hinge:
      return std::pow(std::max(1 - sign * p, 0.0), 2);
    case Kind::poisson:
      return p - t * std::log(p + 1e-7);
    case Kind::log_cosh:
      return e + std::log1p(std::exp(-2 * e)) - std::log(2.0);
    case Kind::kl_divergence:
      return bounded(t) * std::log(bounded(t) / bounded(p));
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
    {.kind = ElementwiseLossSpec::Kind::binary_crossentropy, .from_logits = true, .label_smoothing = 0.2f},
    {.kind = ElementwiseLossSpec::Kind::binary_crossentropy, .label_smoothing = 0.2f},
    {.kind = ElementwiseLossSpec::Kind::mean_absolute_percentage_error},
    {.kind = ElementwiseLossSpec::Kind::mean_squared_logarithmic_error},
    {.kind = ElementwiseLossSpec::Kind::hinge},
    {.kind = ElementwiseLossSpec::Kind::squared_hinge},
    {.kind = ElementwiseLossSpec::Kind::poisson},
    {.kind = ElementwiseLossSpec::Kind::log_cosh},
    {.kind = ElementwiseLossSpec::Kind::kl_divergence},
    {.kind = ElementwiseLossSpec::Kind::binary_focal_crossentropy},
    {.kind = ElementwiseLossSpec::Kind::binary_focal_crossentropy,
     .from_logits = true,
     .label_smoothing = 0.1f,
     .gamma = 1.5f,
     .balances_classes = true},
};

/// What predictions and targets of a loss lie within.
struct Domain {
  double least, most, least_target, most_target;
  bool whole_targets;  // 0 and 1
};
Domain domain_of(const ElementwiseLossSpec& spec) {
  using Kind = ElementwiseLossSpec::Kind;
  switch (spec.kind) {
    case Kind::binary_crossentropy:
    case Kind::binary_focal_crossentropy:
      return spec.from_logits ? Domain{-3, 3, 0, 1, true} : Domain{0.01, 0.99, 0, 1, true};
    case Kind::hinge:
    case Kind::squared_hinge:
      return {-3, 3, 0, 1, true};
    case Kind::mean_squared_logarithmic_error:
    case Kind::poisson:
      return {0.1, 3, 0, 4, false};
    case Kind::kl_divergence:
      return {0.01, 0.99, 0.01, 0.99, false};
    case Kind::mean_absolute_percentage_error:
      return {-3, 3, 0.5, 2, false};
    default:
      return {-3, 3, -1, 1, false};
  }
}

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

Expected expected_of(const CrossEntropyCase& c, double scale_of_all, const Weights& weights) {
  const int64_t columns = c.extent.columns;
  Doubles x = doubles_of(c.x), t = doubles_of(c.target);
  Expected expected{0, Doubles(x.size())};
  for (int64_t r = 0; r < c.extent.rows; ++r) {
    const auto at = static_cast<size_t>(r * columns);
    for (int64_t k = 0; c.spec.sparse && k < columns; ++k) {
      t[at + static_cast<size_t>(k)] = k == c.classes[static_cast<size_t>(r)];
    }
    const auto loss = [&] { return cross_entropy(c.spec, x.data() + at, t.data() + at, columns); };
    const double scale = weights.of(r) * scale_of_all;
    expected.total += weights.of(r) * loss();
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
    for (int variant = 0; variant < 16; ++variant) {
      const CrossEntropySpec spec{(variant & 1) != 0, (variant & 2) != 0, (variant & 4) != 0 ? 0.1f : 0.0f};
      const Weights weights(device, extent.rows, variant % 3 + 1, (variant & 8) != 0);
      CAPTURE(spec.sparse);
      CAPTURE(spec.from_logits);
      CAPTURE(spec.label_smoothing);
      CAPTURE(weights.weighted);
      CAPTURE(extent.columns);
      const CrossEntropyCase c = case_of(device, spec, extent);
      const TypedArray x = device.typed(c.x), diff = device.typed(c.x.size());
      const auto target = device.array(c.target);
      const auto classes = device.array(c.classes);
      const View view = spec.sparse ? view_of(classes, extent.rows) : view_of(target, extent);
      const auto run = [&](float scale, const float* times, void* to) {
        return added(device, [&](double* total) {
          device.ops().cross_entropy_loss(spec, {.prediction = x.data(),
                                                 .target = view,
                                                 .weights = weights.rows(),
                                                 .total = total,
                                                 .rows = extent.rows,
                                                 .columns = extent.columns,
                                                 .diff_prediction = to,
                                                 .scale = scale,
                                                 .loss_scale = times});
        });
      };
      const Expected expected = expected_of(c, 0.5, weights);
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
        ops.cross_entropy_loss({true, logits}, {.prediction = two_rows.data(),
                                                .target = view_of(classes, 2),
                                                .total = total,
                                                .rows = 2,
                                                .columns = 3,
                                                .diff_prediction = diff.data()});
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
        ops.cross_entropy_loss(
            {sparse, logits},
            {.prediction = x.data(), .target = view, .total = total, .rows = 1, .columns = 3});
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
      ops.elementwise_loss(spec, {.prediction = own_x.data(),
                                  .target = view_of(target, {4, 5}),
                                  .total = total,
                                  .rows = 4,
                                  .columns = 5,
                                  .diff_prediction = diff.data()});
    })));
    const Floats found = diff.read();
    for (size_t i = 0; i < 20; ++i) CHECK(std::isnan(found[i]) == (i == 13));
  }
}

DEVICE_TEST_CASE("elementwise losses and their gradients") {
  const auto loss_scale = device.array(Floats{8});
  int number = 0;
  for (const Extent& extent : kExtents) {
    device.shift = extent.rows % 2 ? 1 : 0;
    for (const ElementwiseLossSpec& spec : kLosses) {
      const Weights weights(device, extent.rows, extent.rows % 3 + 1, ++number % 2 == 0);
      CAPTURE(static_cast<int>(spec.kind));
      CAPTURE(extent.columns);
      CAPTURE(weights.weighted);
      const Domain domain = domain_of(spec);
      Floats x = random_floats(extent.rows * extent.columns, 1),
             target = random_floats(extent.rows * extent.columns, 2);
      const auto within = [](float value, double least, double most) {
        return static_cast<float>(least + (most - least) * (static_cast<double>(value) + 1) / 2);
      };
      for (float& value : x) value = within(value, domain.least, domain.most);
      for (float& value : target)
        value = domain.whole_targets ? value > 0 : within(value, domain.least_target, domain.most_target);
      if (domain.least == -3 && elements(extent) > 3 &&
          spec.kind != ElementwiseLossSpec::Kind::binary_focal_crossentropy)
        x[1] = 100, x[2] = -100;
      x = device.kept(x);
      if (spec.kind == ElementwiseLossSpec::Kind::hinge)
        for (float& value : x) value = std::abs(value) == 1 ? 0.5f : value;  // it has no slope there
      Doubles gradient(x.size());
      double expected = 0;
      for (size_t i = 0; i < x.size(); ++i) {
        const double p = static_cast<double>(x[i]), t = static_cast<double>(target[i]), step = 1e-7;
        const double weight = weights.of(static_cast<int64_t>(i) / extent.columns) /
                              static_cast<double>(spec.divisor(extent.columns));
        expected += weight * elementwise(spec, p, t);
        gradient[i] =
            2 * weight * (elementwise(spec, p + step, t) - elementwise(spec, p - step, t)) / (2 * step);
      }
      const TypedArray own_x = device.typed(x), diff = device.typed(x.size());
      const auto own_target = device.array(target);
      const auto run = [&](float scale, const float* times, void* to) {
        return added(device, [&](double* total) {
          device.ops().elementwise_loss(spec, {.prediction = own_x.data(),
                                               .target = view_of(own_target, extent),
                                               .weights = weights.rows(),
                                               .total = total,
                                               .rows = extent.rows,
                                               .columns = extent.columns,
                                               .diff_prediction = to,
                                               .scale = scale,
                                               .loss_scale = times});
        });
      };
      CHECK(run(2, nullptr, diff.data()) == doctest::Approx(expected).epsilon(5e-6));
      const Floats plain = diff.read();
      check_close(plain, gradient, device.tolerance(2e-5));
      CHECK(run(0.25f, loss_scale.data(), diff.data()) == doctest::Approx(expected).epsilon(5e-6));
      CHECK(diff.read() == plain);
      CHECK(run(2, nullptr, nullptr) == doctest::Approx(expected).epsilon(5e-6));
    }
  }
}

namespace {

/// The loss of one row in double precision.
double row_loss(const RowLossSpec& spec, const double* x, const double* t, int64_t n) {
  double pp = 0, tt = 0, pt = 0, most = x[0], total = 0, loss = 0;
  for (int64_t c = 0; c < n; ++c) {
    pp += x[c] * x[c], tt += t[c] * t[c], pt += x[c] * t[c];
    most = std::max(most, x[c]);
  }
  if (spec.kind == RowLossSpec::Kind::cosine_similarity) return -pt / std::sqrt(pp * tt);
  const auto raised = [&](int64_t c) { return spec.from_logits ? std::exp(x[c] - most) : x[c]; };
  for (int64_t c = 0; c < n; ++c) total += raised(c);
  const double smoothing = static_cast<double>(spec.label_smoothing);
  for (int64_t c = 0; c < n; ++c) {
    const double q = clipped(raised(c) / total);
    const double smoothed = (1 - smoothing) * t[c] + smoothing / static_cast<double>(n);
    loss -= static_cast<double>(spec.alpha) * smoothed * std::pow(1 - q, static_cast<double>(spec.gamma)) *
            std::log(q);
  }
  return loss;
}

}  // namespace

DEVICE_TEST_CASE("losses of rows and their gradients") {
  using Kind = RowLossSpec::Kind;
  const auto loss_scale = device.array(Floats{4});
  const RowLossSpec specs[] = {{.kind = Kind::cosine_similarity},
                               {.kind = Kind::categorical_focal_crossentropy},
                               {.kind = Kind::categorical_focal_crossentropy,
                                .from_logits = true,
                                .label_smoothing = 0.1f,
                                .gamma = 1.5f,
                                .alpha = 0.5f}};
  for (const Extent& extent : {Extent{1, 5}, Extent{64, 10}, Extent{300, 3}}) {
    for (const RowLossSpec& spec : specs) {
      for (const bool weighted : {false, true}) {
        const Weights weights(device, extent.rows, 2, weighted);
        CAPTURE(static_cast<int>(spec.kind));
        CAPTURE(extent.columns);
        CAPTURE(weighted);
        const bool probabilities = spec.kind == Kind::categorical_focal_crossentropy && !spec.from_logits;
        const Floats target = distributions(extent, 2);
        const Floats scores = device.kept(probabilities ? distributions(extent, 1)
                                                        : random_floats(extent.rows * extent.columns, 1, 3));
        Doubles x = doubles_of(scores), t = doubles_of(target), gradient(x.size());
        double expected = 0;
        for (int64_t r = 0; r < extent.rows; ++r) {
          const auto at = static_cast<size_t>(r * extent.columns);
          const auto loss = [&] { return row_loss(spec, x.data() + at, t.data() + at, extent.columns); };
          expected += weights.of(r) * loss();
          for (size_t i = at; i < at + static_cast<size_t>(extent.columns); ++i) {
            const double before = x[i], step = 1e-6;
            x[i] = before + step;
            const double above = loss();
            x[i] = before - step;
            gradient[i] = 0.5 * weights.of(r) * (above - loss()) / (2 * step);
            x[i] = before;
          }
        }
        const TypedArray own_x = device.typed(scores), diff = device.typed(scores.size());
        const auto own_target = device.array(target);
        const auto run = [&](void* to) {
          return added(device, [&](double* total) {
            device.ops().row_loss(spec, {.prediction = own_x.data(),
                                         .target = view_of(own_target, extent),
                                         .weights = weights.rows(),
                                         .total = total,
                                         .rows = extent.rows,
                                         .columns = extent.columns,
                                         .diff_prediction = to,
                                         .scale = 0.125f,
                                         .loss_scale = loss_scale.data()});
          });
        };
        CHECK(run(diff.data()) == doctest::Approx(expected).epsilon(5e-6));
        check_close(diff.read(), gradient, device.tolerance(2e-5));
        CHECK(run(nullptr) == doctest::Approx(expected).epsilon(5e-6));
      }
    }
  }
}

DEVICE_TEST_CASE("probabilities at the bounds stay finite") {
  const TypedArray x = device.typed(Floats{0, 1, 0, 1}), diff = device.typed(4);
  const auto target = device.array(Floats{1, 0, 0, 1});
  const double total = added(device, [&](double* to) {
    device.ops().elementwise_loss({ElementwiseLossSpec::Kind::binary_crossentropy, false, 1},
                                  {.prediction = x.data(),
                                   .target = view_of(target, {4, 1}),
                                   .total = to,
                                   .rows = 4,
                                   .columns = 1,
                                   .diff_prediction = diff.data()});
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
      device.ops().metric(spec, {.prediction = own_x.data(),
                                 .target = view_of(own, rows),
                                 .sums = total,
                                 .rows = rows,
                                 .columns = columns});
    });
  };
  const auto dense = [&](const MetricSpec& spec, const Floats& x, const Floats& target,
                         const Extent& extent) {
    const TypedArray own_x = device.typed(x);
    const auto own = device.array(target);
    return added(device, [&](double* total) {
      device.ops().metric(spec, {.prediction = own_x.data(),
                                 .target = view_of(own, extent),
                                 .sums = total,
                                 .rows = extent.rows,
                                 .columns = extent.columns});
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

DEVICE_TEST_CASE("counts of rows, with weights and without") {
  using Kind = CountSpec::Kind;
  const auto count = [&](const CountSpec& spec, const Floats& x, const View& target,
                         const RowWeights& weights, const Extent& extent) {
    const TypedArray own_x = device.typed(x);
    const auto sums = device.array(Doubles(static_cast<size_t>(spec.sums(extent.columns)), 1));
    device.ops().count(spec, {.prediction = own_x.data(),
                              .target = target,
                              .weights = weights,
                              .sums = sums.data(),
                              .rows = extent.rows,
                              .columns = extent.columns});
    Doubles all = sums.read();
    for (double& sum : all) sum -= 1;
    return all;
  };
  // The best of the rows are 1 0 2 0.
  const Extent rows{4, 3};
  const Floats x{0.25f, 0.75f, 0.5f, 0.5f, 0.5f, 0.25f, -1, 0.125f, 0.25f, 0.875f, 0.75f, 0};
  const auto classes = device.array(std::vector<int32_t>{1, 1, 2, -1});
  const auto one_hot = device.array(Floats{0, 1, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0});
  const auto weights = device.array(Floats{2, 0.5f});
  const View sparse = view_of(classes, 4), dense = view_of(one_hot, rows);
  CHECK(count({.kind = Kind::classes, .sparse = true}, x, sparse, {}, rows) ==
        Doubles{0, 1, 1, 1, 1, 1, 0, 2, 1});
  CHECK(count({.kind = Kind::classes}, x, dense, {}, rows) == Doubles{1, 1, 1, 2, 1, 1, 1, 2, 1});
  CHECK(count({.kind = Kind::classes}, x, dense, {weights.data(), 2}, rows) ==
        Doubles{0.5, 2, 0.5, 2.5, 2, 0.5, 0.5, 4, 0.5});
  CHECK(count({.kind = Kind::classes, .by_threshold = true, .threshold = 0.5f}, x, dense, {}, rows) ==
        Doubles{1, 1, 0, 1, 2, 0, 1, 2, 1});
  CHECK(count({.kind = Kind::confusion, .sparse = true}, x, sparse, {}, rows) ==
        Doubles{0, 0, 0, 1, 1, 0, 0, 0, 1});
  const auto labels = device.array(Floats{1, 0, 1, 1});
  CHECK(count({.kind = Kind::confusion, .threshold = 0.5f}, {0.75f, 0.25f, 0.5f, 1}, view_of(labels, {4, 1}),
              {}, {4, 1}) == Doubles{1, 0, 1, 2});
  // Two targets of 1, at 0.5 and at 1 - 1e-7; and 0 at 1e-7. A logit beyond the ends is in the last bucket.
  const CountSpec buckets{.kind = Kind::buckets, .buckets = 4};
  const auto three = device.array(Floats{1, 1, 0});
  CHECK(count(buckets, {0.5f, 1, 0}, view_of(three, {3, 1}), {}, {3, 1}) == Doubles{1, 0, 0, 0, 0, 0, 1, 1});
  CountSpec logits = buckets;
  logits.scores = CountSpec::Scores::logits;
  CHECK(count(logits, {-100, 100, kNan}, view_of(three, {3, 1}), {}, {3, 1}) ==
        Doubles{1, 0, 0, 0, 1, 0, 0, 1});
  CountSpec each{.kind = Kind::buckets,
                 .sparse = true,
                 .scores = CountSpec::Scores::softmax_logits,
                 .buckets = 2,
                 .by_column = true};
  CHECK(count(each, {4, 0, 0, 0, 4, 0}, view_of(classes, 2), {}, {2, 3}) ==
        Doubles{1, 1, 0, 0, 0, 0, 1, 1, 2, 0, 0, 0});
  CHECK(count({.kind = Kind::regression}, {1, 2, 3, 4}, view_of(labels, {2, 2}), {}, {2, 2}) ==
        Doubles{2, 1, 2, 1, 4, 13, 2});
  const Extent large{3000, 7};
  const Floats many = device.random(large.rows * large.columns, 3);
  std::vector<int32_t> numbers;
  for (int64_t r = 0; r < large.rows; ++r) numbers.push_back(static_cast<int32_t>(r % 7));
  const auto own_numbers = device.array(numbers);
  const Doubles matrix =
      count({.kind = Kind::confusion, .sparse = true}, many, view_of(own_numbers, large.rows), {}, large);
  Doubles expected(49);
  for (int64_t r = 0; r < large.rows; ++r) {
    const float* row = many.data() + r * 7;
    expected[static_cast<size_t>(r % 7 * 7 + (std::max_element(row, row + 7) - row))] += 1;
  }
  CHECK(matrix == expected);
}

DEVICE_TEST_CASE("sums are added to a total") {
  for (const int64_t n : {1, 5, 100000}) {
    Floats values = random_floats(n, 9);
    double expected = 0;
    for (const float value : values) expected += static_cast<double>(value);
    const auto own = device.array(values);
    CHECK(added(device, [&](double* total) { device.ops().add_sum(own.data(), total, n); }) ==
          doctest::Approx(expected).epsilon(1e-12));
  }
}

DEVICE_TEST_CASE("metrics count rows by their weights") {
  using Kind = MetricSpec::Kind;
  const TypedArray x = device.typed(Floats{0.25f, 0.625f, 0.5f, 0.875f, 0.375f, 0.125f});
  const auto classes = device.array(std::vector<int32_t>{1, 1, 0});
  const auto labels = device.array(Floats{0, 1, 1, 1, 1, 0}), weights = device.array(Floats{2, 0.5f, 4});
  const auto run = [&](const MetricSpec& spec, const View& target) {
    return added(device, [&](double* total) {
      device.ops().metric(spec, {.prediction = x.data(),
                                 .target = target,
                                 .weights = {weights.data(), 1},
                                 .sums = total,
                                 .rows = 3,
                                 .columns = 2});
    });
  };
  CHECK(run({.kind = Kind::sparse_top_k}, view_of(classes, 3)) == 6.5);
  CHECK(run({.kind = Kind::binary_accuracy}, view_of(labels, {3, 2})) == doctest::Approx(2 + 0.25 + 2));
  CHECK(run({.kind = Kind::mean_absolute_error}, view_of(labels, {3, 2})) ==
        doctest::Approx(2 * 0.3125 + 0.5 * 0.3125 + 4 * 0.375));
}

}  // namespace dtrain::test
