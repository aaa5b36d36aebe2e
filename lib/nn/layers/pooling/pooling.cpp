#include "nn/layers/pooling/pooling.h"

namespace dtrain {

PreparedPooling::PreparedPooling(const LayerRequest& request, PoolingSpec::Kind kind, const Window& window,
                                 const Shape& src, Layout output_layout) {
  const Size3 extents = extents_of(src);
  const TrimmedWindow inside = trimmed(window, src);
  pooling_ = request.ops.pooling({.kind = kind,
                                  .batch = request.batch,
                                  .depth = extents.depth,
                                  .height = extents.height,
                                  .width = extents.width,
                                  .channels = src.back(),
                                  .pool_depth = inside.size.depth,
                                  .pool_height = inside.size.height,
                                  .pool_width = inside.size.width,
                                  .stride_depth = window.strides.depth,
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
