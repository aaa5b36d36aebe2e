// What conv2d, conv3d, depthwise_conv2d and conv2d_transpose share.
#pragma once

#include <memory>

#include "nn/layer.h"
#include "nn/layers/window.h"

namespace dtrain {

/// The spec of a convolution by `window` from images, or volumes, of `src` to `filters` channels, with the
/// activation that the request asks for and without bias.
ConvolutionSpec convolution_spec(const Window& window, const LayerRequest& request, const Shape& src,
                                 int64_t filters);

/// A convolution from source to destination, as all but conv2d_transpose are. The layer's parameters are
/// the kernel, and the bias where the spec has one.
class PreparedConvolution : public PreparedLayer {
 public:
  PreparedConvolution(const LayerRequest& request, const ConvolutionSpec& spec);
  void forward(const LayerArguments& args) override;
  void backward(const LayerArguments& args) override;

 private:
  bool use_bias_, by_data_, by_filter_;
  std::unique_ptr<Convolution> convolution_;
};

}  // namespace dtrain
