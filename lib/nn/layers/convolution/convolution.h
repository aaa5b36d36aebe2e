// Code shared by conv2d, conv3d, depthwise_conv2d and conv2d_transpose.
#pragma once

#include <memory>

#include "nn/layer.h"
#include "nn/layers/window.h"

namespace dtrain {

/// Returns the spec of a convolution of images or volumes of shape `src` by `window` to `filters` channels,
/// with the activation of the request and without bias.
ConvolutionSpec convolution_spec(const Window& window, const LayerRequest& request, const Shape& src,
                                 int64_t filters);

/// A prepared convolution of the layer's input, for all convolution layers except conv2d_transpose. The
/// parameters are the kernel and, if the spec has one, the bias.
class PreparedConvolution : public PreparedLayer {
 public:
  PreparedConvolution(const LayerRequest& request, const ConvolutionSpec& spec);
  void forward(const LayerArguments& args) override;
  void backward(const LayerArguments& args) override;

 private:
  bool use_bias_;
  bool by_data_, by_filter_;  // whether backward computes the gradient of the input, and of the parameters
  std::unique_ptr<Convolution> convolution_;
};

}  // namespace dtrain
