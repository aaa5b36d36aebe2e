// The options of conv2d_transpose, and a function that creates it for conv1d_transpose.
#pragma once

#include <memory>
#include <optional>

#include "nn/layer.h"
#include "nn/layers/kernel_and_bias.h"
#include "nn/layers/window.h"

namespace dtrain {

struct TransposeOptions : KernelAndBias {
  int64_t filters = 0;
  Size2 kernel_size;
  Size2 strides;
  Border padding = Border::valid;
  std::optional<int64_t> output_padding;
  Size2 dilation_rate;
};

/// Returns a conv2d_transpose layer with these options.
std::shared_ptr<const Layer> make_conv2d_transpose(const TransposeOptions& options);

}  // namespace dtrain
