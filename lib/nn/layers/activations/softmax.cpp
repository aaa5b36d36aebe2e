#include "nn/layers/activations/softmax.h"

#include "nn/layers/common.h"
#include "nn/layers/table.h"
#include "nn/no_options.h"

namespace dtrain {
namespace {

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
    if (args.diff_inputs[0])  // null if the input's gradient is not needed
      ops_.softmax_backward(args.output(), args.diff_output(), args.diff_inputs[0], rows_, columns_);
  }

 private:
  Ops& ops_;
  int64_t columns_, rows_;
};

class SoftmaxLayer : public Layer {
 public:
  explicit SoftmaxLayer(const NoOptions&) {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs,
                                const ReportError& report_error) const override {
    return same_as(float_input_with_axis(inputs, "to normalize over", report_error));
  }

  MaskRule mask_rule() const override { return MaskRule::passed; }

  std::unique_ptr<PreparedLayer> prepare(const LayerRequest& request) const override {
    return prepare_softmax(request);
  }

  bool is_softmax() const override { return true; }  // a cross-entropy may read the layer's input instead
};

}  // namespace

std::unique_ptr<PreparedLayer> prepare_softmax(const LayerRequest& request) {
  return std::make_unique<PreparedSoftmax>(request);
}

void add_softmax(Registry<Layer>& table) {
  table.add<SoftmaxLayer>("softmax",
                          Schema<NoOptions>("exp(x) divided by its sum along the last axis.").details({}));
}

}  // namespace dtrain
