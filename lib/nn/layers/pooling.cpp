#include "nn/layers/pooling.h"

namespace dtrain {

PoolingKernel::PoolingKernel(const LayerRequest& request, PoolingSpec::Kind kind, const Window& window,
                             Layout output_layout) {
  const Shape& src = request.inputs[0].shape;
  const TrimmedWindow inside = trimmed(window, src);
  pooling_ = request.ops.pooling({.kind = kind,
                                  .batch = request.batch,
                                  .height = src[0],
                                  .width = src[1],
                                  .channels = src[2],
                                  .pool_height = inside.size.height,
                                  .pool_width = inside.size.width,
                                  .stride_height = window.strides.height,
                                  .stride_width = window.strides.width,
                                  .padding = inside.padding,
                                  .layout = request.input_layouts[0],
                                  .training = request.training});
  traits_.input_layouts = {request.input_layouts[0]};
  traits_.output_layout = output_layout;
  traits_.scratch_bytes = pooling_->scratch_bytes();
  traits_.saved_bytes = pooling_->saved_bytes();
}

void PoolingKernel::forward(const Pass& pass) {
  pooling_->forward(pass.input(), pass.output, pass.saved, pass.scratch);
}

void PoolingKernel::backward(const Pass& pass) {
  if (pass.diff_inputs[0])
    pooling_->backward(pass.diff_output, pass.diff_inputs[0], pass.saved, pass.scratch);
}

}  // namespace dtrain
