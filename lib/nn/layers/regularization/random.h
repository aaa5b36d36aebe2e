// Layers that change their input randomly in training, such as dropout.
#pragma once

#include "nn/layers/common.h"

namespace dtrain {

/// Base class of layers that apply the same random operation to their input (forward) and to the gradient of
/// their output (backward). The random numbers depend on the seed of the run, the node, the step and the
/// sample's index in the global batch. They do not depend on the replica.
class PreparedRandom : public PreparedLayer {
 public:
  /// `changes_nothing` is true if the operation returns its input unchanged, for example with a dropout rate
  /// of 0.
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
  /// Applies the random operation to `src` and writes the result to `dst`. `dst` may be `src`.
  virtual void apply(const LayerArguments& args, const Philox& random, const void* src, void* dst) = 0;

  Ops& ops_;
  const int64_t samples_;

 private:
  uint32_t stream_;
};

}  // namespace dtrain
