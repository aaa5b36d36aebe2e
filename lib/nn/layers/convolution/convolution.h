// Code shared by conv2d, conv3d, depthwise_conv2d and conv2d_transpose.
#pragma once

#include <memory>

#include "nn/layer.h"
#include "nn/layers/window.h"

namespace dtrain {

/// Returns the spec of a convolution without bias. `src` is the shape of an image or volume, `window`
/// describes the kernel, and `filters` is the number of output channels. The request gives the batch size and
/// the activation.
ConvolutionSpec convolution_spec(const Window& window, const LayerRequest& request, const Shape& src,
                                 int64_t filters);

/// A prepared convolution of the layer's input, for conv2d, conv3d and depthwise_conv2d. The parameters are
/// the kernel and, if the spec has one, the bias.
class PreparedConvolution : public PreparedLayer {
 public:
  PreparedConvolution(const LayerRequest& request, const ConvolutionSpec& spec);
  void forward(const LayerArguments& args) override;
  void backward(const LayerArguments& args) override;

 private:
  bool use_bias_;
  /// Whether backward computes the gradient of the input (by_data_) and of the parameters (by_filter_).
  bool by_data_, by_filter_;
  std::unique_ptr<Convolution> convolution_;
};

}  // namespace dtrain
