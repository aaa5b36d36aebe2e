#include "nn/layers/activation_function.h"

#include <memory>

#include "nn/no_options.h"

namespace dtrain {
namespace {

struct LeakyReluOptions {
  double negative_slope = 0.2;
};
struct EluOptions {
  double alpha = 1;
};
struct GeluOptions {
  bool approximate = false;
};

}  // namespace

template <>
const Registry<ActivationFunction>& registry<ActivationFunction>() {
  static const Registry<ActivationFunction> table = [] {
    Registry<ActivationFunction> t("activation");
    const auto plain = [&t](const std::string& name, const std::string& doc, ActivationFunction function) {
      t.add_with(name, Schema<NoOptions>(doc), [function](const NoOptions&, const ConfigNode&) {
        return std::make_shared<const ActivationFunction>(function);
      });
    };
    const auto elementwise = [](Activation kind, double alpha = 0, bool approximate = false) {
      return ActivationFunction{{kind, static_cast<float>(alpha), approximate}};
    };
    plain("linear", "x.", elementwise(Activation::linear));
    plain("relu", "max(x, 0).", elementwise(Activation::relu));
    t.add_with("leaky_relu",
               Schema<LeakyReluOptions>("x where positive, else negative_slope x.")
                   .example("{negative_slope: 0.1}")
                   .optional("negative_slope", &LeakyReluOptions::negative_slope, "slope where negative",
                             at_least(0.0)),
               [=](const LeakyReluOptions& options, const ConfigNode&) {
                 return std::make_shared<const ActivationFunction>(
                     elementwise(Activation::leaky_relu, options.negative_slope));
               });
    t.add_with("gelu",
               Schema<GeluOptions>("x times the normal distribution's cumulative function.")
                   .example("{approximate: true}")
                   .optional("approximate", &GeluOptions::approximate, "by tanh instead of erf"),
               [=](const GeluOptions& options, const ConfigNode&) {
                 return std::make_shared<const ActivationFunction>(
                     elementwise(Activation::gelu, 0, options.approximate));
               });
    plain("silu", "x sigmoid(x).", elementwise(Activation::silu));
    plain("tanh", "The hyperbolic tangent.", elementwise(Activation::tanh));
    plain("sigmoid", "1 / (1 + exp(-x)).", elementwise(Activation::sigmoid));
    t.add_with(
        "elu",
        Schema<EluOptions>("x where positive, else alpha (exp(x) - 1).")
            .example("{alpha: 0.5}")
            .optional("alpha", &EluOptions::alpha, "minus the limit for x to minus infinity", at_least(0.0)),
        [=](const EluOptions& options, const ConfigNode&) {
          return std::make_shared<const ActivationFunction>(elementwise(Activation::elu, options.alpha));
        });
    plain("softmax", "exp(x) over its sum along the last axis.", ActivationFunction{{}, true});
    return t;
  }();
  return table;
}

}  // namespace dtrain
