// The convolution of images, for layers that are one under other names.
#pragma once

#include <memory>

#include "nn/layer.h"
#include "nn/layers/activation_function.h"
#include "nn/layers/window.h"

namespace dtrain {

struct Conv2DOptions {
  int64_t filters = 0;
  Size2 kernel_size;
  Size2 strides;
  Border padding = Border::valid;
  Size2 dilation_rate;
  OptionalActivation activation;
  bool use_bias = true;
  Configured<Initializer> kernel_initializer = registry<Initializer>().make("glorot_uniform");
  Configured<Initializer> bias_initializer = registry<Initializer>().make("zeros");
};

/// The layer conv2d with these options.
std::shared_ptr<const Layer> make_conv2d(const Conv2DOptions& options);

}  // namespace dtrain
