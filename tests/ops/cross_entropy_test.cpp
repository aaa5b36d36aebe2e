#include "ops/losses.h"

namespace dtrain::test {
namespace {

/// Returns the loss of one row in double precision.
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

struct CrossEntropyCase {
  CrossEntropySpec spec;
  Extent extent;
  Floats x;
  std::vector<int32_t> classes;
  Floats target;  // target, used if the spec is not sparse
};

CrossEntropyCase case_of(const Device& device, const CrossEntropySpec& spec, const Extent& extent) {
  CrossEntropyCase c{spec, extent, {}, {}, distributions(extent, 2)};
  c.x = spec.from_logits ? random_floats(extent.rows * extent.columns, 1, 10) : distributions(extent, 1);
  if (spec.from_logits && extent.columns > 4) c.x[1] = 100, c.x[2] = -100;
  c.x = device.kept(c.x);
  for (int64_t r = 0; r < extent.rows; ++r) c.classes.push_back(static_cast<int32_t>(r * 7 % extent.columns));
  return c;
}

constexpr int64_t kMostColumns = 40;  // number of columns whose gradients are checked

struct Expected {
  double total = 0;
  Doubles gradient;  // gradient of each row's first kMostColumns columns; 0 for the other columns
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

/// Keeps the first kMostColumns columns of each row, and sets all other columns to 0.
Floats first_columns(Floats diff, const Extent& extent) {
  for (size_t i = 0; i < diff.size(); ++i)
    if (static_cast<int64_t>(i) % extent.columns >= kMostColumns) diff[i] = 0;
  return diff;
}

}  // namespace

DEVICE_TEST_CASE("cross entropy and its gradient match the reference") {
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
      const TypedArray x = device.typed(c.x);
      const auto target = device.array(c.target);
      const auto classes = device.array(c.classes);
      const LossBatch batch{device, extent, x.data(),
                            spec.sparse ? view_of(classes, extent.rows) : view_of(target, extent),
                            weights.rows()};
      const auto run = [&](const LossArguments& args) { device.ops().cross_entropy_loss(spec, args); };
      const Expected expected = expected_of(c, 0.5, weights);
      const Floats gradient = batch.check(run, expected.total, 0.5f, 2e-6);
      // If there is a single class, its probability is clipped, and the gradient is not compared.
      if (spec.from_logits || extent.columns > 1)
        check_close(first_columns(gradient, extent), expected.gradient, device.tolerance(2e-5));
    }
  }
}

DEVICE_TEST_CASE("a class out of range or a NaN prediction makes the loss NaN") {
  for (const bool logits : {true, false}) {
    CAPTURE(logits);
    const auto of = [&](bool sparse) {
      return [&, spec = CrossEntropySpec{sparse, logits}](const LossArguments& args) {
        device.ops().cross_entropy_loss(spec, args);
      };
    };
    const TypedArray two_rows = device.typed(device.kept({0.2f, 0.3f, 0.5f, 0.1f, 0.1f, 0.8f}));
    for (const int32_t wrong : {-1, 3}) {
      const TypedArray diff = device.typed(6);
      const auto classes = device.array(std::vector<int32_t>{1, wrong});
      const LossBatch batch{device, {2, 3}, two_rows.data(), view_of(classes, 2)};
      CHECK(std::isnan(batch.total(of(true), diff.data())));
      const Floats found = diff.read();
      for (size_t i = 0; i < 6; ++i) CHECK(std::isnan(found[i]) == (i >= 3));
    }
    const TypedArray x = device.typed(Floats{0.2f, kNan, 0.5f});
    const auto target = device.array(Floats{0.2f, 0.4f, 0.4f});
    const auto classes = device.array(std::vector<int32_t>{1});
    for (const bool sparse : {true, false}) {
      const View view = sparse ? view_of(classes, 1) : view_of(target, {1, 3});
      CHECK(std::isnan(LossBatch{device, {1, 3}, x.data(), view}.total(of(sparse))));
    }
  }
}

}  // namespace dtrain::test
