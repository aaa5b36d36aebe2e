#include "nn/layers/activations/activation.h"
#include "nn/layers/common.h"
#include "nn/layers/convolution/convolution.h"
#include "nn/layers/table.h"
#include "nn/layers/weight_options.h"

namespace dtrain {
namespace {

struct DepthwiseOptions {
  Size2 kernel_size;
  Size2 strides;
  Border padding = Border::valid;
  int64_t depth_multiplier = 1;
  Size2 dilation_rate;
  OptionalActivation activation;
  bool use_bias = true;
  WeightOptions depthwise{registry<Initializer>().make("glorot_uniform")};
  WeightOptions bias{registry<Initializer>().make("zeros")};

  static const Schema<DepthwiseOptions>& schema() {
    using O = DepthwiseOptions;
    static const auto schema =
        Schema<O>(
            "A depthwise convolution of images: each channel is convolved separately, with depth_multiplier "
            "kernels per channel.")
            .example("{kernel_size: 3, padding: same, use_bias: false}")
            .required("kernel_size", &O::kernel_size, "size of the kernel")
            .optional(
                "strides", &O::strides,
                "stride of the kernel: the distance between neighboring positions of the kernel in the image")
            .optional("padding", &O::padding,
                      "Padding of the image. With `valid`, there is no padding. With `same`, zeros are added "
                      "around the image, so that the output's size is ceil(size / stride).")
            .optional("depth_multiplier", &O::depth_multiplier,
                      "number of output channels for each input channel", extent())
            .optional("dilation_rate", &O::dilation_rate,
                      "dilation of the kernel: the distance between neighboring elements of the kernel in "
                      "the image")
            .optional("activation", &O::activation, "activation function of the output")
            .optional("use_bias", &O::use_bias, "whether to add a bias")
            .part("depthwise_", &O::depthwise,
                  weight_schema("the kernel of shape [height, width, channels, depth_multiplier]"))
            .part("bias_", &O::bias, weight_schema("the bias"))
            .details({"activation", "use_bias"});
    return schema;
  }
};

class DepthwiseConv2D : public LayerWith<DepthwiseOptions> {
 public:
  using LayerWith::LayerWith;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs,
                                const ReportError& report_error) const override {
    const TensorSpec* input = image_input(inputs, report_error);
    if (!input || spreads_too_far(window(), "kernel_size", *input, report_error) ||
        !fits(window(), "kernel_size", *input, report_error))
      return {};
    return {TensorSpec{{}, window_positions(window(), input->shape, filters(inputs)), DType::float32}};
  }

  std::vector<ParameterSpec> parameters(std::span<const TensorSpec> inputs) const override {
    const auto [height, width] = options_.kernel_size;
    std::vector<ParameterSpec> specs = {options_.depthwise.parameter(
        "depthwise_kernel", {height, width, inputs[0].shape[2], options_.depth_multiplier})};
    if (options_.use_bias) specs.push_back(options_.bias.parameter("bias", {filters(inputs)}));
    return specs;
  }

  std::unique_ptr<PreparedLayer> prepare(const LayerRequest& request) const override {
    ConvolutionSpec spec =
        convolution_spec(window(), request, request.inputs[0].shape, filters(request.inputs));
    spec.depthwise = true;
    spec.bias = options_.use_bias;
    return std::make_unique<PreparedConvolution>(request, spec);
  }

  Configured<Layer> activation() const override { return activation_layer(options_.activation); }
  bool can_fuse(const ActivationSpec& spec) const override { return from_output(spec); }

 private:
  Window window() const {
    return {options_.kernel_size, options_.strides, options_.dilation_rate, options_.padding};
  }
  int64_t filters(std::span<const TensorSpec> inputs) const {
    return inputs[0].shape[2] * options_.depth_multiplier;
  }
};

}  // namespace

void add_depthwise_conv2d(Registry<Layer>& table) {
  table.add<DepthwiseConv2D>("depthwise_conv2d", DepthwiseOptions::schema());
}

}  // namespace dtrain
