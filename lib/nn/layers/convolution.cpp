#include "nn/layers/convolution.h"

#include "nn/layers/common.h"

namespace dtrain {

ConvolutionSpec convolution_spec(const Window& window, const LayerRequest& request, const Shape& src,
                                 int64_t filters) {
  return {.batch = request.batch,
          .height = src[0],
          .width = src[1],
          .channels = src[2],
          .filters = filters,
          .kernel_height = window.size.height,
          .kernel_width = window.size.width,
          .stride_height = window.strides.height,
          .stride_width = window.strides.width,
          .dilation_height = window.dilation.height,
          .dilation_width = window.dilation.width,
          .padding = padding_of(window, src),
          .activation = request.activation,
          .training = request.training,
          .needs_diff_src = request.training && request.input_needs_gradient[0]};
}

ConvolutionKernel::ConvolutionKernel(const LayerRequest& request, const ConvolutionSpec& spec)
    : use_bias_(spec.bias),
      by_data_(spec.needs_diff_src),
      by_filter_(trains_parameters(request)),
      convolution_(request.ops.convolution(spec)) {
  traits_.input_layouts = {convolution_->src_layout()};
  traits_.output_layout = convolution_->dst_layout();
  traits_.scratch_bytes = convolution_->scratch_bytes();
  traits_.backward_reads_inputs = by_filter_;
}

void ConvolutionKernel::forward(const Pass& pass) {
  convolution_->forward(pass.input(), pass.weights[0], use_bias_ ? pass.weights[1] : nullptr, pass.output,
                        pass.scratch);
}

void ConvolutionKernel::backward(const Pass& pass) {
  if (by_filter_)
    convolution_->backward_filter(pass.input(), pass.diff_output, pass.diff_parameters[0],
                                  use_bias_ ? pass.diff_parameters[1] : nullptr, pass.scratch);
  if (by_data_)
    convolution_->backward_data(pass.diff_output, pass.weights[0], pass.diff_inputs[0], pass.scratch);
}

}  // namespace dtrain
