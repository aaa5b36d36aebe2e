#include "nn/layers/common.h"
#include "nn/layers/table.h"
#include "nn/no_options.h"

namespace dtrain {
namespace {

class AddKernel : public Kernel {
 public:
  explicit AddKernel(const LayerRequest& request)
      : ops_(request.ops),
        activation_(request.activation),
        elements_(batch_elements(request, request.output.shape)),
        sources_(request.inputs.size()) {
    traits_.input_layouts.assign(request.inputs.size(), request.input_layouts[0]);
    traits_.output_layout = request.input_layouts[0];
    traits_.passes_gradient = true;
    traits_.forward_in_place = true;
  }

  void forward(const Pass& pass) override {
    for (size_t i = 0; i < sources_.size(); ++i) sources_[i] = pass.inputs[i];
    ops_.sum(pass.output, sources_, activation_, elements_);
  }

 private:
  Ops& ops_;
  ActivationSpec activation_;
  int64_t elements_;
  std::vector<const void*> sources_;
};

class Add : public Layer {
 public:
  explicit Add(const NoOptions&) {}

  std::optional<TensorSpec> infer(std::span<const TensorSpec> inputs,
                                  const Complain& complain) const override {
    if (!equal_float_inputs(inputs, complain)) return std::nullopt;
    return TensorSpec{{}, inputs[0].shape, DType::float32};
  }

  std::unique_ptr<Kernel> prepare(const LayerRequest& request) const override {
    return std::make_unique<AddKernel>(request);
  }

  bool can_fuse(const ActivationSpec& spec) const override { return from_output(spec); }
  std::string keras_class() const override { return "Add"; }
  Json keras_config() const override { return Json::object(); }
};

}  // namespace

void add_add(KindTable<Layer>& table) {
  table.add<Add>("add", Schema<NoOptions>("The sum of inputs of one shape.").details({}));
}

}  // namespace dtrain
