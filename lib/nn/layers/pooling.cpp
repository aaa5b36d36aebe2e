#include "nn/layers/pooling.h"

namespace dtrain {

PreparedPooling::PreparedPooling(const LayerRequest& request, PoolingSpec::Kind kind, const Window& window,
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
  requirements_.input_layouts = {request.input_layouts[0]};
  requirements_.output_layouts = {output_layout};
  requirements_.scratch_bytes = pooling_->scratch_bytes();
  requirements_.saved_bytes = pooling_->saved_bytes();
}

void PreparedPooling::forward(const LayerArguments& args) {
  pooling_->forward(args.input(), args.output(), args.saved, args.scratch);
}

void PreparedPooling::backward(const LayerArguments& args) {
  if (args.diff_inputs[0])
    pooling_->backward(args.diff_output(), args.diff_inputs[0], args.saved, args.scratch);
}

}  // namespace dtrain
