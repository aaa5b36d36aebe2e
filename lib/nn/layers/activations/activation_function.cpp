#include "nn/layers/activations/activation_function.h"

#include <limits>
#include <memory>

#include <fmt/format.h>

#include "nn/no_options.h"

namespace dtrain {
namespace {

using Made = std::shared_ptr<const ActivationFunction>;

ActivationSpec with_alpha(Activation kind, double alpha) {
  return {.kind = kind, .alpha = static_cast<float>(alpha)};
}

ActivationSpec clipped_relu(double maximum) {
  return {.kind = Activation::clipped_relu, .maximum = static_cast<float>(maximum)};
}

Made made(const ActivationSpec& spec) {
  return std::make_shared<const ActivationFunction>(ActivationFunction{.spec = spec});
}

struct ReluOptions {
  std::optional<double> max_value;
  double negative_slope = 0;
  double threshold = 0;

  static Schema<ReluOptions> schema() {
    using O = ReluOptions;
    return Schema<O>(
               "Rectified linear unit: max(x, 0). With options, the result is min(x, max_value) if x is at "
               "least threshold, and negative_slope * (x - threshold) otherwise.")
        .example("{max_value: 6}")
        .optional("max_value", &O::max_value,
                  "Upper limit of the output, which must be greater than threshold. Default: no limit.")
        .optional("negative_slope", &O::negative_slope, "slope of the function for x below threshold",
                  at_least(0.0))
        .optional("threshold", &O::threshold, "value of x below which negative_slope is used", at_least(0.0))
        .rule([](const O& o, const ConfigNode& node, Diagnostics& diagnostics) {
          if (o.max_value && !(static_cast<float>(*o.max_value) > static_cast<float>(o.threshold)))
            report_unexpected(*node.find("max_value"), "relu's max_value",
                              fmt::format("a number that is greater than the threshold {}", o.threshold),
                              diagnostics);
        })
        .short_by_default();
  }

  static Made make(const ReluOptions& o) {
    if (o.max_value || o.threshold != 0) {
      ActivationSpec spec = clipped_relu(o.max_value.value_or(std::numeric_limits<float>::infinity()));
      spec.alpha = static_cast<float>(o.negative_slope);
      spec.threshold = static_cast<float>(o.threshold);
      return made(spec);
    }
    return made(o.negative_slope != 0 ? with_alpha(Activation::leaky_relu, o.negative_slope)
                                      : ActivationSpec{.kind = Activation::relu});
  }
};

struct LeakyReluOptions {
  double negative_slope = 0.2;

  static Schema<LeakyReluOptions> schema() {
    return Schema<LeakyReluOptions>(
               "Leaky rectified linear unit: x if x is positive, and negative_slope * x otherwise.")
        .example("{negative_slope: 0.1}")
        .optional("negative_slope", &LeakyReluOptions::negative_slope, "slope of the function for negative x",
                  at_least(0.0));
  }

  static Made make(const LeakyReluOptions& o) {
    return made(with_alpha(Activation::leaky_relu, o.negative_slope));
  }
};

struct EluOptions {
  double alpha = 1;

  static Schema<EluOptions> schema() {
    return Schema<EluOptions>(
               "Exponential linear unit: x if x is positive, and alpha * (exp(x) - 1) otherwise.")
        .example("{alpha: 0.5}")
        .optional("alpha", &EluOptions::alpha,
                  "Scale of the negative part. For large negative x, the output approaches -alpha.",
                  at_least(0.0));
  }

  static Made make(const EluOptions& o) { return made(with_alpha(Activation::elu, o.alpha)); }
};

struct GeluOptions {
  bool approximate = false;

  static Schema<GeluOptions> schema() {
    return Schema<GeluOptions>(
               "Gaussian error linear unit: x times the cumulative distribution function of the standard "
               "normal distribution at x.")
        .example("{approximate: true}")
        .optional(
            "approximate", &GeluOptions::approximate,
            "whether to use an approximation of the distribution function, which is computed with tanh");
  }

  static Made make(const GeluOptions& o) {
    return made({.kind = Activation::gelu, .approximate = o.approximate});
  }
};

struct HardSigmoidOptions {
  double slope = 1.0 / 6;

  static Schema<HardSigmoidOptions> schema() {
    return Schema<HardSigmoidOptions>(
               "Hard sigmoid: slope * x + 1/2, clipped to [0, 1]. The slope is 1/6 in Keras 3, and was 0.2 "
               "in Keras 1 and 2.")
        .example("{slope: 0.2}")
        .optional("slope", &HardSigmoidOptions::slope, "factor of x", greater_than(0.0))
        .short_by_default();
  }

  static Made make(const HardSigmoidOptions& o) {
    return made(with_alpha(Activation::hard_sigmoid, o.slope));
  }
};

void add_function(Registry<ActivationFunction>& table, const std::string& name, const std::string& doc,
                  Made function) {
  table.add_with(name, Schema<NoOptions>(doc),
                 [function = std::move(function)](const NoOptions&, const ConfigNode&) { return function; });
}

template <class Options>
void add_with_options(Registry<ActivationFunction>& table, const std::string& name) {
  table.add_with(name, Options::schema(),
                 [](const Options& options, const ConfigNode&) { return Options::make(options); });
}

}  // namespace

template <>
const Registry<ActivationFunction>& registry<ActivationFunction>() {
  static const Registry<ActivationFunction> table = [] {
    Registry<ActivationFunction> t("activation");
    const auto elementwise = [&t](const std::string& name, Activation kind, const std::string& doc) {
      add_function(t, name, doc, made({.kind = kind}));
    };
    elementwise("linear", Activation::linear, "x, unchanged.");
    add_with_options<ReluOptions>(t, "relu");
    add_function(t, "relu6", "relu with a max_value of 6.", ReluOptions::make({.max_value = 6}));
    add_with_options<LeakyReluOptions>(t, "leaky_relu");
    add_with_options<GeluOptions>(t, "gelu");
    elementwise("silu", Activation::silu, "x * sigmoid(x).");
    elementwise("hard_silu", Activation::hard_silu, "x * hard_sigmoid(x).");
    elementwise("mish", Activation::mish, "x * tanh(softplus(x)).");
    elementwise("tanh", Activation::tanh, "The hyperbolic tangent.");
    elementwise("sigmoid", Activation::sigmoid, "1 / (1 + exp(-x)).");
    add_with_options<HardSigmoidOptions>(t, "hard_sigmoid");
    add_with_options<EluOptions>(t, "elu");
    elementwise("selu", Activation::selu,
                "Scaled exponential linear unit: 1.05070 times elu with an alpha of 1.67326. The "
                "layer before it should have the kernel_initializer lecun_normal.");
    elementwise("softplus", Activation::softplus, "log(1 + exp(x)).");
    elementwise("softsign", Activation::softsign, "x / (1 + |x|).");
    elementwise("exponential", Activation::exponential, "exp(x).");
    add_function(t, "softmax", "exp(x) divided by its sum along the last axis.",
                 std::make_shared<const ActivationFunction>(ActivationFunction{.spec = {}, .softmax = true}));
    return t;
  }();
  return table;
}

}  // namespace dtrain
