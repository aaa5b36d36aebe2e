#include "nn/layers/activations/activation.h"

#include "nn/layers/activations/softmax.h"
#include "nn/layers/common.h"
#include "nn/layers/table.h"

namespace dtrain {
namespace {

struct ActivationOptions {
  Configured<ActivationFunction> activation;

  static const Schema<ActivationOptions>& schema() {
    static const auto schema =
        Schema<ActivationOptions>("An activation function as a separate layer.")
            .example("{activation: relu}")
            .required("activation", &ActivationOptions::activation, "the activation function")
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

class ActivationLayer : public LayerWith<ActivationOptions> {
 public:
  using LayerWith::LayerWith;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs,
                                const ReportError& report_error) const override {
    return same_as(is_softmax() ? float_input_with_axis(inputs, "to normalize over", report_error)
                                : float_input(inputs, report_error));
  }

  MaskRule mask_rule() const override { return MaskRule::passed; }

  std::unique_ptr<PreparedLayer> prepare(const LayerRequest& request) const override {
    if (is_softmax()) return prepare_softmax(request);
    return std::make_unique<PreparedElementwise>(request, options_.activation->spec);
  }

  std::optional<ActivationSpec> elementwise() const override {
    if (!options_.activation || is_softmax()) return std::nullopt;
    return options_.activation->spec;
  }
  // If the activation option has an error, options_.activation is empty, and the result is false. The shape
  // of the layer is still checked.
  bool is_softmax() const override { return options_.activation && options_.activation->softmax; }
};

}  // namespace

Configured<Layer> activation_layer(const OptionalActivation& activation) {
  if (!activation) return {};
  const ActivationFunction& function = **activation;
  if (function.spec.kind == Activation::linear && !function.softmax) return {};
  const ActivationOptions options{*activation};
  return {
      "activation", std::make_shared<const ActivationLayer>(options),
      resolved_kind("activation", activation->resolved.mark(), ActivationOptions::schema().write(options))};
}

void add_activation(Registry<Layer>& table) {
  table.add<ActivationLayer>("activation", ActivationOptions::schema());
}

}  // namespace dtrain
