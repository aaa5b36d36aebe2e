#include "nn/layers/activation.h"

#include "nn/layers/common.h"
#include "nn/layers/table.h"
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

struct ActivationOptions {
  Configured<ActivationFunction> activation;

  static const Schema<ActivationOptions>& schema() {
    static const auto schema = Schema<ActivationOptions>("An activation function as a layer of its own.")
                                   .required("activation", &ActivationOptions::activation, "the function")
                                   .positional("activation")
                                   .details({"activation"});
    return schema;
  }
};

class PreparedElementwise : public PreparedLayer {
 public:
  PreparedElementwise(const LayerRequest& request, const ActivationSpec& spec)
      : ops_(request.ops), spec_(spec), elements_(batch_elements(request, request.output().shape)) {
    requirements_.input_layouts = {request.input_layouts[0]};
    requirements_.output_layouts = {request.input_layouts[0]};
    requirements_.is_view = spec.kind == Activation::linear;
    requirements_.backward_reads_outputs = request.training && from_output(spec);
    requirements_.backward_reads_inputs = request.training && !from_output(spec);
    requirements_.forward_in_place = !requirements_.backward_reads_inputs;
    requirements_.backward_in_place = true;
  }

  void forward(const LayerArguments& args) override {
    ops_.activation_forward(spec_, args.input(), args.output(), elements_);
  }

  void backward(const LayerArguments& args) override {
    const void* saved = from_output(spec_) ? args.output() : args.input();
    if (args.diff_inputs[0])
      ops_.activation_backward(spec_, saved, args.diff_output(), args.diff_inputs[0], elements_);
  }

 private:
  Ops& ops_;
  ActivationSpec spec_;
  int64_t elements_;
};

class PreparedSoftmax : public PreparedLayer {
 public:
  explicit PreparedSoftmax(const LayerRequest& request)
      : ops_(request.ops),
        columns_(request.output().shape.back()),
        rows_(batch_elements(request, request.output().shape) / columns_) {
    requirements_.backward_reads_outputs = request.training;
  }

  void forward(const LayerArguments& args) override {
    ops_.softmax_forward(args.input(), args.output(), rows_, columns_);
  }

  void backward(const LayerArguments& args) override {
    if (args.diff_inputs[0])
      ops_.softmax_backward(args.output(), args.diff_output(), args.diff_inputs[0], rows_, columns_);
  }

 private:
  Ops& ops_;
  int64_t columns_, rows_;
};

class ActivationLayer : public LayerWith<ActivationOptions> {
 public:
  using LayerWith::LayerWith;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs,
                                const ReportError& report_error) const override {
    return same_as(is_softmax() ? float_input_with_axis(inputs, "to normalise over", report_error)
                                : float_input(inputs, report_error));
  }

  std::unique_ptr<PreparedLayer> prepare(const LayerRequest& request) const override {
    if (is_softmax()) return std::make_unique<PreparedSoftmax>(request);
    return std::make_unique<PreparedElementwise>(request, options_.activation->spec);
  }

  std::optional<ActivationSpec> elementwise() const override {
    if (!options_.activation || is_softmax()) return std::nullopt;
    return options_.activation->spec;
  }
  // A mistake in the function leaves the layer's shape to be checked.
  bool is_softmax() const override { return options_.activation && options_.activation->softmax; }
  std::string keras_class() const override {
    const std::string& layer = options_.activation->keras_layer;
    return layer.empty() ? "Activation" : layer;
  }
  Json keras_config() const override {
    if (options_.activation->keras_layer.empty()) return LayerWith::keras_config();
    return Json::object().set("alpha", static_cast<double>(options_.activation->spec.alpha));
  }
};

}  // namespace

template <>
const Registry<ActivationFunction>& registry<ActivationFunction>() {
  static const Registry<ActivationFunction> table = [] {
    Registry<ActivationFunction> t("activation");
    const auto plain = [&t](const std::string& name, const std::string& doc, ActivationFunction function) {
      function.keras = name;
      t.add_with(name, Schema<NoOptions>(doc), [function](const NoOptions&, const ConfigNode&) {
        return std::make_shared<const ActivationFunction>(function);
      });
    };
    const auto elementwise = [](Activation kind, double alpha = 0, bool approximate = false) {
      return ActivationFunction{{kind, static_cast<float>(alpha), approximate}};
    };
    // Keras's functions take no options from a file; with others than the defaults they are layers.
    const auto of_layer = [](ActivationFunction function, const char* name, const char* layer,
                             bool defaults) {
      function.keras = name;
      if (!defaults) function.keras_layer = layer;
      return std::make_shared<const ActivationFunction>(function);
    };
    plain("linear", "x.", elementwise(Activation::linear));
    plain("relu", "max(x, 0).", elementwise(Activation::relu));
    t.add_with("leaky_relu",
               Schema<LeakyReluOptions>("x where positive, else negative_slope x.")
                   .optional("negative_slope", &LeakyReluOptions::negative_slope, "slope where negative",
                             at_least(0.0)),
               [=](const LeakyReluOptions& options, const ConfigNode&) {
                 return of_layer(elementwise(Activation::leaky_relu, options.negative_slope), "leaky_relu",
                                 "LeakyReLU", options.negative_slope == LeakyReluOptions().negative_slope);
               });
    t.add_with("gelu",
               Schema<GeluOptions>("x times the normal distribution's cumulative function.")
                   .optional("approximate", &GeluOptions::approximate, "by tanh instead of erf"),
               [=](const GeluOptions& options, const ConfigNode&) {
                 ActivationFunction function = elementwise(Activation::gelu, 0, options.approximate);
                 // Keras has none by tanh: it refuses to load the model unless one of this name is given as
                 // one of the custom_objects, which is better than to load another model.
                 function.keras = options.approximate ? "gelu_tanh" : "gelu";
                 return std::make_shared<const ActivationFunction>(function);
               });
    plain("silu", "x sigmoid(x).", elementwise(Activation::silu));
    plain("tanh", "The hyperbolic tangent.", elementwise(Activation::tanh));
    plain("sigmoid", "1 / (1 + exp(-x)).", elementwise(Activation::sigmoid));
    t.add_with(
        "elu",
        Schema<EluOptions>("x where positive, else alpha (exp(x) - 1).")
            .optional("alpha", &EluOptions::alpha, "minus the limit for x to minus infinity", at_least(0.0)),
        [=](const EluOptions& options, const ConfigNode&) {
          return of_layer(elementwise(Activation::elu, options.alpha), "elu", "ELU",
                          options.alpha == EluOptions().alpha);
        });
    plain("softmax", "exp(x) over its sum along the last axis.", ActivationFunction{{}, true});
    return t;
  }();
  return table;
}

Configured<Layer> activation_layer(const OptionalActivation& activation) {
  if (!activation) return {};
  const ActivationFunction& function = **activation;
  if (function.spec.kind == Activation::linear && !function.softmax) return {};
  const ActivationOptions options{*activation};
  return {
      "activation", std::make_shared<const ActivationLayer>(options),
      resolved_kind("activation", activation->resolved.mark(), ActivationOptions::schema().write(options))};
}

Json keras_activation(const ConfigNode& activation) {
  if (activation.is_null()) return "linear";
  Diagnostics diagnostics;
  const Configured<ActivationFunction> function =
      registry<ActivationFunction>().parse(activation, diagnostics);
  return function->keras_layer.empty() ? function->keras : "linear";
}

void add_activation(Registry<Layer>& table) {
  table.add<ActivationLayer>("activation", ActivationOptions::schema());
}

}  // namespace dtrain
