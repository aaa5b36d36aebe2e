// The options of conv2d and conv3d, and a function that creates conv2d for layers that are special cases of
// it.
#pragma once

#include <memory>

#include "nn/layer.h"
#include "nn/layers/kernel_and_bias.h"
#include "nn/layers/window.h"

namespace dtrain {

/// The options of conv2d (`Size` is Size2) or conv3d (`Size` is Size3), as in Keras.
template <class Size>
struct ConvOptions : KernelAndBias {
  int64_t filters = 0;
  Size kernel_size;
  Size strides;
  Border padding = Border::valid;
  Size dilation_rate;
  int64_t groups = 1;
};

/// Returns a conv2d layer with these options.
std::shared_ptr<const Layer> make_conv2d(const ConvOptions<Size2>& options);

}  // namespace dtrain
