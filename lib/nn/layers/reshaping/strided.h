// Layers whose output contains elements of the input in a different order, or several times.
#pragma once

#include "nn/layer.h"
#include "ops/merging.h"

namespace dtrain {

/// Computes forward as one strided sum and backward as another strided sum. Both operate on the whole batch.
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

/// The strided sums of a layer's forward and backward.
struct StridedSums {
  StridedSum forward, backward;
};

/// Returns the strided sums of an array of shape [rows, width, channels]. Forward repeats each row `down`
/// times, and each pixel of a row `across` times.
inline StridedSums repeated(int64_t rows, int64_t width, int64_t channels, int64_t down, int64_t across) {
  const int64_t wide = width * across * channels;  // number of elements in a row of the output
  return {{.extents = {1, rows, down, width, across, channels},
           .strides = {0, width * channels, 0, channels, 0, 1}},
          {.extents = {1, 1, 1, rows, width, channels},
           .strides = {0, 0, 0, down * wide, across * channels, 1},
           .sum_extents = {down, across},
           .sum_strides = {wide, channels}}};
}

}  // namespace dtrain
