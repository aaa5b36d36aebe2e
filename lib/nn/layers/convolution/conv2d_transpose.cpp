#include "nn/layers/convolution/conv2d_transpose.h"

#include <algorithm>

#include <fmt/format.h>

#include "nn/layers/activations/activation.h"
#include "nn/layers/common.h"
#include "nn/layers/convolution/convolution.h"
#include "nn/layers/table.h"

namespace dtrain {
namespace {

const Schema<TransposeOptions>& transpose_schema() {
  using O = TransposeOptions;
  static const auto schema =
      with_kernel_and_bias(
          Schema<O>("A transposed convolution (also called deconvolution). It enlarges images by a factor of "
                    "about `strides`.")
              .example("{filters: 16, kernel_size: 2, strides: 2}")
              .required("filters", &O::filters, "number of channels of the output", extent())
              .required("kernel_size", &O::kernel_size, "size of the kernel")
              .optional("strides", &O::strides,
                        "stride: the distance in the output between neighboring pixels of the input")
              .optional("padding", &O::padding,
                        "Determines the size of the output. With `same`, the size is strides times the size "
                        "of the input. With `valid`, the output has all pixels that the kernel reaches.")
              .optional("output_padding", &O::output_padding,
                        "Number of pixels added at the bottom and at the right of the output, which must be "
                        "less than the strides. Default: the size of the output follows from `padding`.",
                        at_least(std::optional<int64_t>(0)))
              .optional("dilation_rate", &O::dilation_rate,
                        "dilation of the kernel: the distance between neighboring elements of the kernel in "
                        "the output"),
          "height, width, filters, channels")
          .rule([](const O& o, const ConfigNode& node, Diagnostics& diagnostics) {
            const int64_t stride = std::min(o.strides.height, o.strides.width);
            if (o.output_padding && *o.output_padding >= stride)
              diagnostics.error(*node.find("output_padding"),
                                fmt::format("conv2d_transpose: output_padding must be less than each of the "
                                            "strides {}, but it is {}",
                                            str(o.strides), *o.output_padding));
          });
  return schema;
}

/// Computes a transposed convolution, which is the backward computation of `convolution`. The source of
/// `convolution` is the output of this layer, and the destination is the input.
class PreparedTranspose : public PreparedLayer {
 public:
  PreparedTranspose(const LayerRequest& request, const ConvolutionSpec& spec, bool use_bias)
      : ops_(request.ops),
        use_bias_(use_bias),
        by_data_(request.training && request.input_needs_gradient[0]),
        by_filter_(trains_parameters(request)),
        filters_(spec.channels),
        pixels_(spec.batch * spec.height * spec.width),
        convolution_(request.ops.convolution(spec)) {
    requirements_.input_layouts = {convolution_->dst_layout()};
    requirements_.output_layouts = {convolution_->src_layout()};
    requirements_.scratch_bytes = convolution_->scratch_bytes();
    requirements_.remarks = convolution_->remarks();
    requirements_.backward_reads_inputs = by_filter_;
    if (by_filter_ && use_bias) requirements_.bias = 1;
  }

  void forward(const LayerArguments& args) override {
    convolution_->backward_data(args.input(), args.weights[0], args.output(), nullptr, args.scratch);
    if (use_bias_) ops_.add_bias(args.output(), args.output(), args.weights[1], pixels_, filters_);
  }

  void backward(const LayerArguments& args) override {
    if (by_filter_)
      convolution_->backward_filter(args.diff_output(), args.input(), args.diff_parameters[0], nullptr,
                                    args.scratch);
    if (by_data_)
      convolution_->forward(args.diff_output(), args.weights[0], nullptr, args.diff_inputs[0], nullptr,
                            args.scratch);
  }

 private:
  Ops& ops_;
  bool use_bias_, by_data_, by_filter_;
  int64_t filters_, pixels_;
  std::unique_ptr<Convolution> convolution_;
};

class Conv2DTranspose : public LayerWith<TransposeOptions> {
 public:
  using LayerWith::LayerWith;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs,
                                const ReportError& report_error) const override {
    const TensorSpec* input = image_input(inputs, report_error);
    if (!input || spreads_too_far(window(), "kernel_size", *input, report_error)) return {};
    const Shape& image = input->shape;
    const Size3 size = spread(window());
    const Shape output = {length(image[0], size.height, options_.strides.height),
                          length(image[1], size.width, options_.strides.width), options_.filters};
    // Checks that a convolution of the output gives the shape of the input, because forward is the backward
    // computation of that convolution. With some values of output_padding, the shapes differ.
    if (output[0] < 1 || output[1] < 1 || window_positions(window(), output, image[2]) != image) {
      report_error(
          fmt::format("output_padding {} is not possible with kernel_size {}, strides {} and an input of "
                      "shape {}; change output_padding, or remove it",
                      options_.output_padding.value_or(0), str(options_.kernel_size), str(options_.strides),
                      image.str()));
      return {};
    }
    return {TensorSpec{{}, output, DType::float32}};
  }

  std::vector<ParameterSpec> parameters(std::span<const TensorSpec> inputs) const override {
    const auto [height, width] = options_.kernel_size;
    return options_.parameters({height, width, options_.filters, inputs[0].shape[2]}, options_.filters);
  }

  std::unique_ptr<PreparedLayer> prepare(const LayerRequest& request) const override {
    ConvolutionSpec spec =
        convolution_spec(window(), request, request.output().shape, request.inputs[0].shape[2]);
    spec.plain_only = true;      // add_bias() requires that the channels of a pixel are contiguous
    spec.needs_diff_src = true;  // forward calls the convolution's backward_data, also at inference
    spec.training = true;
    return std::make_unique<PreparedTranspose>(request, spec, options_.use_bias);
  }

  Configured<Layer> activation() const override { return activation_layer(options_.activation); }

 private:
  Window window() const {
    return {options_.kernel_size, options_.strides, options_.dilation_rate, options_.padding};
  }

  /// Returns the extent of the output along one axis, by Keras's rule. `size` is the extent of the dilated
  /// kernel. Users can only set an output_padding that is less than the strides. But conv1d_transpose treats
  /// a sequence as an image of height 1, for which the vertical stride is 1. Therefore output_padding is
  /// limited to stride - 1, which is 0 for this height.
  int64_t length(int64_t input, int64_t size, int64_t stride) const {
    const bool same = options_.padding == Border::same;
    if (!options_.output_padding) return input * stride + (same ? 0 : std::max<int64_t>(size - stride, 0));
    return (input - 1) * stride + size - (same ? size / 2 * 2 : 0) +
           std::min(*options_.output_padding, stride - 1);
  }
};

}  // namespace

std::shared_ptr<const Layer> make_conv2d_transpose(const TransposeOptions& options) {
  return std::make_shared<const Conv2DTranspose>(options);
}

void add_conv2d_transpose(Registry<Layer>& table) {
  table.add<Conv2DTranspose>("conv2d_transpose", transpose_schema());
}

}  // namespace dtrain
