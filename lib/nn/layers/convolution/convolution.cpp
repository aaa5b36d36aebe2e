#include "nn/layers/convolution/convolution.h"

#include "nn/layers/common.h"

namespace dtrain {

ConvolutionSpec convolution_spec(const Window& window, const LayerRequest& request, const Shape& src,
                                 int64_t filters) {
  const Size3 extents = extents_of(src);
  return {.batch = request.batch,
          .depth = extents.depth,
          .height = extents.height,
          .width = extents.width,
          .channels = src.back(),
          .filters = filters,
          .kernel_depth = window.size.depth,
          .kernel_height = window.size.height,
          .kernel_width = window.size.width,
          .stride_depth = window.strides.depth,
          .stride_height = window.strides.height,
          .stride_width = window.strides.width,
          .dilation_depth = window.dilation.depth,
          .dilation_height = window.dilation.height,
          .dilation_width = window.dilation.width,
          .padding = padding_of(window, src),
          .activation = request.activation,
          .training = request.training,
          .needs_diff_src = request.training && request.input_needs_gradient[0]};
}

PreparedConvolution::PreparedConvolution(const LayerRequest& request, const ConvolutionSpec& spec)
    : use_bias_(spec.bias),
      by_data_(spec.needs_diff_src),
      by_filter_(trains_parameters(request)),
      convolution_(request.ops.convolution(spec)) {
  requirements_.input_layouts = {convolution_->src_layout()};
  requirements_.output_layouts = {convolution_->dst_layout()};
  requirements_.scratch_bytes = convolution_->scratch_bytes();
  requirements_.saved_bytes = convolution_->saved_bytes();
  requirements_.remarks = convolution_->remarks();
  requirements_.backward_reads_inputs = by_filter_;
  if (by_filter_ && use_bias_ && !convolution_->computes_bias_gradient()) requirements_.bias = 1;
}

void PreparedConvolution::forward(const LayerArguments& args) {
  convolution_->forward(args.input(), args.weights[0], use_bias_ ? args.weights[1] : nullptr, args.output(),
                        args.saved, args.scratch);
}

void PreparedConvolution::backward(const LayerArguments& args) {
  const bool gives_bias = use_bias_ && convolution_->computes_bias_gradient();
  if (by_filter_)
    convolution_->backward_filter(args.input(), args.diff_output(), args.diff_parameters[0],
                                  gives_bias ? args.diff_parameters[1] : nullptr, args.scratch);
  if (by_data_)
    convolution_->backward_data(args.diff_output(), args.weights[0], args.diff_inputs[0], args.saved,
                                args.scratch);
}

}  // namespace dtrain
