#include "nn/layers/common.h"
#include "nn/layers/table.h"
#include "nn/no_options.h"

namespace dtrain {
namespace {

class PreparedAdd : public PreparedLayer {
 public:
  explicit PreparedAdd(const LayerRequest& request)
      : ops_(request.ops),
        activation_(request.activation),
        elements_(batch_elements(request, request.output().shape)),
        sources_(request.inputs.size()) {
    requirements_.input_layouts.assign(request.inputs.size(), request.input_layouts[0]);
    requirements_.output_layouts = {request.input_layouts[0]};
    requirements_.passes_gradient = true;
    requirements_.forward_in_place = true;
  }

  void forward(const LayerArguments& args) override {
    for (size_t i = 0; i < sources_.size(); ++i) sources_[i] = args.inputs[i];
    ops_.sum(args.output(), sources_, activation_, elements_);
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

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs,
                                const ReportError& report_error) const override {
    return same_as(equal_float_inputs(inputs, report_error));
  }

  MaskRule mask_rule() const override { return MaskRule::passed; }

  std::unique_ptr<PreparedLayer> prepare(const LayerRequest& request) const override {
    return std::make_unique<PreparedAdd>(request);
  }

  bool can_fuse(const ActivationSpec& spec) const override { return from_output(spec); }
  bool is_sum() const override { return true; }
};

}  // namespace

void add_add(Registry<Layer>& table) {
  table.add<Add>("add",
                 Schema<NoOptions>("The elementwise sum of inputs. All inputs must have the same shape.")
                     .example("{inputs: [a, b]}")
                     .details({}));
}

}  // namespace dtrain
