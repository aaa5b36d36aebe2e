#include "nn/layers/common.h"
#include "nn/layers/table.h"
#include "nn/no_options.h"

namespace dtrain {
namespace {

class PreparedMultiply : public PreparedLayer {
 public:
  explicit PreparedMultiply(const LayerRequest& request)
      : ops_(request.ops),
        elements_(batch_elements(request, request.output().shape)),
        factors_(request.inputs.size()) {
    requirements_.input_layouts.assign(request.inputs.size(), request.input_layouts[0]);
    requirements_.output_layouts = {request.input_layouts[0]};
    requirements_.backward_reads_inputs = request.training;
    requirements_.forward_in_place = !request.training;
  }

  void forward(const LayerArguments& args) override {
    for (size_t i = 0; i < factors_.size(); ++i) factors_[i] = args.inputs[i];
    ops_.multiply(args.output(), factors_, elements_);
  }

  /// Computes the gradient of each input: the gradient of the output times the product of the other inputs.
  void backward(const LayerArguments& args) override {
    for (size_t i = 0; i < factors_.size(); ++i) {
      if (!args.diff_inputs[i]) continue;
      for (size_t j = 0; j < factors_.size(); ++j) factors_[j] = j == i ? args.diff_output() : args.inputs[j];
      ops_.multiply(args.diff_inputs[i], factors_, elements_);
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

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs,
                                const ReportError& report_error) const override {
    return same_as(equal_float_inputs(inputs, report_error));
  }

  MaskRule mask_rule() const override { return MaskRule::passed; }

  std::unique_ptr<PreparedLayer> prepare(const LayerRequest& request) const override {
    return std::make_unique<PreparedMultiply>(request);
  }
};

}  // namespace

void add_multiply(Registry<Layer>& table) {
  table.add<Multiply>(
      "multiply", Schema<NoOptions>("The elementwise product of inputs. All inputs must have the same shape.")
                      .example("{inputs: [a, b]}")
                      .details({}));
}

}  // namespace dtrain
