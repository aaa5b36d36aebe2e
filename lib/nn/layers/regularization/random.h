// Layers that change their input at random in training.
#pragma once

#include "nn/layers/common.h"

namespace dtrain {

/// Base of layers that apply the same random operation to their input and to their output's gradient. The
/// random numbers depend on the run's seed, the node, the step and the sample's index in the global batch,
/// but not on the replica.
class PreparedRandom : public PreparedLayer {
 public:
  /// `changes_nothing`: whether the options make the operation return its input.
  PreparedRandom(const LayerRequest& request, bool changes_nothing)
      : ops_(request.ops), samples_(request.batch), stream_(request.stream) {
    requirements_.is_view = !request.training || changes_nothing;
    requirements_.forward_in_place = true;
    requirements_.backward_in_place = true;
  }

  void forward(const LayerArguments& args) override {
    apply(args, Philox::of(args.seed, stream_), args.input(), args.output());
  }
  void backward(const LayerArguments& args) override {
    if (args.diff_inputs[0])
      apply(args, Philox::of(args.seed, stream_), args.diff_output(), args.diff_inputs[0]);
  }

 protected:
  /// Writes the changed `src` to `dst`, which may be the same array.
  virtual void apply(const LayerArguments& args, const Philox& random, const void* src, void* dst) = 0;

  Ops& ops_;
  const int64_t samples_;

 private:
  uint32_t stream_;
};

/// Base of layers whose output has the shape of their input, which may have any shape.
template <class Options>
class SameShapeLayer : public LayerWith<Options> {
 public:
  using LayerWith<Options>::LayerWith;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs,
                                const ReportError& report_error) const override {
    return same_as(float_input(inputs, report_error));
  }
};

}  // namespace dtrain
