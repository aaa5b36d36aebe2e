#include "ops/losses.h"

namespace dtrain::test {
namespace {

/// Returns the loss of one element in double precision.
double elementwise(const ElementwiseLossSpec& spec, double p, double t) {
  using Kind = ElementwiseLossSpec::Kind;
  const double e = std::abs(p - t), delta = static_cast<double>(spec.delta);
  const double smoothing = static_cast<double>(spec.label_smoothing);
  t = (1 - smoothing) * t + smoothing / 2;  // smoothing is 0 except for cross-entropies
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

/// Returns the relative tolerance of a float32 total. The tolerance is larger for losses with powers or
/// hyperbolic functions, because these functions add rounding errors. The tolerance of a gradient is five
/// times as large.
double tolerance_of(const ElementwiseLossSpec& spec) {
  using Kind = ElementwiseLossSpec::Kind;
  const bool plain = spec.kind == Kind::binary_crossentropy || spec.kind == Kind::mean_squared_error ||
                     spec.kind == Kind::mean_absolute_error || spec.kind == Kind::huber;
  return plain ? 2e-6 : 4e-6;
}

/// Ranges of a loss's predictions and targets.
struct Domain {
  double least, most, least_target, most_target;
  bool whole_targets;  // each target is 0 or 1
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

DEVICE_TEST_CASE("elementwise losses and their gradients match the reference") {
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
        // The loss is not differentiable at 1 and -1.
        for (float& value : x) value = std::abs(value) == 1 ? 0.5f : value;
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
      const TypedArray own_x = device.typed(x);
      const auto own_target = device.array(target);
      const LossBatch batch{device, extent, own_x.data(), view_of(own_target, extent), weights.rows()};
      const auto run = [&](const LossArguments& args) { device.ops().elementwise_loss(spec, args); };
      const double tolerance = tolerance_of(spec);
      check_close(batch.check(run, expected, 2, tolerance), gradient, device.tolerance(5 * tolerance));
    }
  }
}

DEVICE_TEST_CASE("a NaN prediction makes the loss and the gradient of this prediction NaN") {
  for (const ElementwiseLossSpec& spec : kLosses) {
    CAPTURE(static_cast<int>(spec.kind));
    Floats x(20, 0.5f);
    x[13] = kNan;
    const TypedArray own_x = device.typed(x), diff = device.typed(Floats(20));
    const auto target = device.array(Floats(20, 1));
    const auto run = [&](const LossArguments& args) { device.ops().elementwise_loss(spec, args); };
    const LossBatch batch{device, {4, 5}, own_x.data(), view_of(target, {4, 5})};
    CHECK(std::isnan(batch.total(run, diff.data())));
    const Floats found = diff.read();
    for (size_t i = 0; i < 20; ++i) CHECK(std::isnan(found[i]) == (i == 13));
  }
}

DEVICE_TEST_CASE("losses of probabilities 0 and 1 are finite") {
  const TypedArray x = device.typed(Floats{0, 1, 0, 1}), diff = device.typed(4);
  const auto target = device.array(Floats{1, 0, 0, 1});
  const ElementwiseLossSpec spec{ElementwiseLossSpec::Kind::binary_crossentropy, false, 1};
  const auto run = [&](const LossArguments& args) { device.ops().elementwise_loss(spec, args); };
  const LossBatch batch{device, {4, 1}, x.data(), view_of(target, {4, 1})};
  CHECK(batch.total(run, diff.data()) ==
        doctest::Approx(-std::log(1e-7) - std::log(1.1920929e-7)).epsilon(1e-5));
  CHECK(diff.read() == Floats(4, 0));
}

}  // namespace dtrain::test
