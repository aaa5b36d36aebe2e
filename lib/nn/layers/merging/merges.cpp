#include <fmt/format.h>

#include "nn/layers/common.h"
#include "nn/layers/table.h"
#include "nn/no_options.h"

namespace dtrain {
namespace {

class PreparedMerge : public PreparedLayer {
 public:
  PreparedMerge(const LayerRequest& request, MergeKind kind)
      : ops_(request.ops),
        kind_(kind),
        elements_(batch_elements(request, request.output().shape)),
        sources_(request.inputs.size()) {
    requirements_.input_layouts.assign(request.inputs.size(), request.input_layouts[0]);
    requirements_.output_layouts = {request.input_layouts[0]};
    const bool compares = kind == MergeKind::maximum || kind == MergeKind::minimum;
    requirements_.backward_reads_inputs = request.training && compares;
  }

  void forward(const LayerArguments& args) override {
    for (size_t i = 0; i < sources_.size(); ++i) sources_[i] = args.inputs[i];
    ops_.merge(kind_, args.output(), sources_, elements_);
  }

  void backward(const LayerArguments& args) override {
    for (size_t i = 0; i < sources_.size(); ++i)
      sources_[i] = requirements_.backward_reads_inputs ? args.inputs[i] : nullptr;
    for (size_t i = 0; i < sources_.size(); ++i)
      if (args.diff_inputs[i])
        ops_.merge_backward(kind_, sources_, i, args.diff_output(), args.diff_inputs[i], elements_);
  }

 private:
  Ops& ops_;
  MergeKind kind_;
  int64_t elements_;
  std::vector<const void*> sources_;
};

class Merge : public Layer {
 public:
  explicit Merge(MergeKind kind) : kind_(kind) {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs,
                                const ReportError& report_error) const override {
    const TensorSpec* first = equal_float_inputs(inputs, report_error);
    if (!first) return {};
    const size_t most = kind_ == MergeKind::subtract ? 2 : kMostMerged;
    if (inputs.size() > most) {
      report_error(fmt::format("expected {} inputs, found {}",
                               most == 2 ? "2" : fmt::format("at most {}", most), inputs.size()));
      return {};
    }
    return same_as(first);
  }

  MaskRule mask_rule() const override { return MaskRule::passed; }

  std::unique_ptr<PreparedLayer> prepare(const LayerRequest& request) const override {
    return std::make_unique<PreparedMerge>(request, kind_);
  }

 private:
  MergeKind kind_;
};

}  // namespace

void add_merges(Registry<Layer>& table) {
  const auto add = [&](const char* name, MergeKind kind, const char* doc) {
    table.add_with(name, Schema<NoOptions>(doc).example("{inputs: [a, b]}").details({}),
                   [kind](const NoOptions&, const ConfigNode&) -> std::shared_ptr<const Layer> {
                     return std::make_shared<const Merge>(kind);
                   });
  };
  add("subtract", MergeKind::subtract,
      "Subtracts the second input from the first input. Both inputs must have the same shape.");
  add("average", MergeKind::average, "The elementwise mean of inputs. All inputs must have the same shape.");
  add("maximum", MergeKind::maximum,
      "The elementwise maximum of inputs. All inputs must have the same shape.");
  add("minimum", MergeKind::minimum,
      "The elementwise minimum of inputs. All inputs must have the same shape.");
}

}  // namespace dtrain
