// Layers whose outputs are elements of their inputs, in another order or repeated.
#pragma once

#include "nn/layer.h"
#include "ops/merging.h"

namespace dtrain {

/// Runs one strided sum forward and another backward. Both are over the whole batch.
class PreparedStridedSum : public PreparedLayer {
 public:
  PreparedStridedSum(const LayerRequest& request, const StridedSum& forward, const StridedSum& backward)
      : ops_(request.ops), forward_(forward), backward_(backward) {}

  void forward(const LayerArguments& args) override {
    ops_.strided_sum(forward_, args.input(), args.output());
  }
  void backward(const LayerArguments& args) override {
    if (args.diff_inputs[0]) ops_.strided_sum(backward_, args.diff_output(), args.diff_inputs[0]);
  }

 private:
  Ops& ops_;
  StridedSum forward_, backward_;
};

}  // namespace dtrain
