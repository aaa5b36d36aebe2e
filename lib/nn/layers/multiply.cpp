#include "nn/layers/common.h"
#include "nn/layers/table.h"
#include "nn/no_options.h"

namespace dtrain {
namespace {

class MultiplyKernel : public Kernel {
 public:
  explicit MultiplyKernel(const LayerRequest& request)
      : ops_(request.ops),
        elements_(batch_elements(request, request.output.shape)),
        factors_(request.inputs.size()) {
    traits_.input_layouts.assign(request.inputs.size(), request.input_layouts[0]);
    traits_.output_layout = request.input_layouts[0];
    traits_.backward_reads_inputs = request.training;
    traits_.forward_in_place = !request.training;
  }

  void forward(const Pass& pass) override {
    for (size_t i = 0; i < factors_.size(); ++i) factors_[i] = pass.inputs[i];
    ops_.multiply(pass.output, factors_, elements_);
  }

  /// The gradient of a factor is the output's times the other factors.
  void backward(const Pass& pass) override {
    for (size_t i = 0; i < factors_.size(); ++i) {
      if (!pass.diff_inputs[i]) continue;
      for (size_t j = 0; j < factors_.size(); ++j) factors_[j] = j == i ? pass.diff_output : pass.inputs[j];
      ops_.multiply(pass.diff_inputs[i], factors_, elements_);
    }
  }

 private:
  Ops& ops_;
  int64_t elements_;
  std::vector<const void*> factors_;
};

class Multiply : public Layer {
 public:
  explicit Multiply(const NoOptions&) {}

  std::optional<TensorSpec> infer(std::span<const TensorSpec> inputs,
                                  const Complain& complain) const override {
    if (!equal_float_inputs(inputs, complain)) return std::nullopt;
    return TensorSpec{{}, inputs[0].shape, DType::float32};
  }

  std::unique_ptr<Kernel> prepare(const LayerRequest& request) const override {
    return std::make_unique<MultiplyKernel>(request);
  }

  std::string keras_class() const override { return "Multiply"; }
  Json keras_config() const override { return Json::object(); }
};

}  // namespace

void add_multiply(KindTable<Layer>& table) {
  table.add<Multiply>(
      "multiply", Schema<NoOptions>("The product, element by element, of inputs of one shape.").details({}));
}

}  // namespace dtrain
