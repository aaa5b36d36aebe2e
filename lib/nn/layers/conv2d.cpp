#include "nn/layers/conv2d.h"

#include "nn/layers/activation.h"
#include "nn/layers/common.h"
#include "nn/layers/convolution.h"
#include "nn/layers/table.h"

namespace dtrain {
namespace {

const Schema<Conv2DOptions>& conv2d_schema() {
  using O = Conv2DOptions;
  static const auto schema =
      Schema<O>("A convolution of images: [height, width, channels] to [height, width, filters].")
          .example("{filters: 32, kernel_size: 3, padding: same, activation: relu}")
          .required("filters", &O::filters, "channels of the output", extent())
          .required("kernel_size", &O::kernel_size, "extent of the kernel")
          .optional("strides", &O::strides, "steps of the kernel over the image")
          .optional("padding", &O::padding, "'same' pads with zeros to ceil(extent / stride)")
          .optional("dilation_rate", &O::dilation_rate, "distance between the kernel's elements")
          .optional("activation", &O::activation, "what follows")
          .optional("use_bias", &O::use_bias, "add a bias")
          .optional("kernel_initializer", &O::kernel_initializer,
                    "how the [height, width, channels, filters] kernel begins")
          .optional("bias_initializer", &O::bias_initializer, "how the bias begins")
          .details({"activation", "use_bias", "kernel_initializer", "bias_initializer"});
  return schema;
}

class Conv2D : public LayerWith<Conv2DOptions> {
 public:
  using LayerWith::LayerWith;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs,
                                const ReportError& report_error) const override {
    const TensorSpec* input = image_input(inputs, report_error);
    if (!input || spreads_too_far(window(), "kernel_size", report_error) ||
        !fits(window(), "kernel_size", *input, report_error))
      return {};
    return {TensorSpec{{}, window_positions(window(), input->shape, options_.filters), DType::float32}};
  }

  std::vector<ParameterSpec> parameters(std::span<const TensorSpec> inputs) const override {
    const auto [height, width] = options_.kernel_size;
    std::vector<ParameterSpec> specs = {
        {"kernel", {height, width, inputs[0].shape[2], options_.filters}, options_.kernel_initializer, {}}};
    if (options_.use_bias) specs.push_back({"bias", {options_.filters}, options_.bias_initializer, {}});
    return specs;
  }

  std::unique_ptr<PreparedLayer> prepare(const LayerRequest& request) const override {
    ConvolutionSpec spec = convolution_spec(window(), request, request.inputs[0].shape, options_.filters);
    spec.bias = options_.use_bias;
    return std::make_unique<PreparedConvolution>(request, spec);
  }

  Configured<Layer> activation() const override { return activation_layer(options_.activation); }
  bool can_fuse(const ActivationSpec& spec) const override { return from_output(spec); }

 private:
  Window window() const {
    return {options_.kernel_size, options_.strides, options_.dilation_rate, options_.padding};
  }
};

}  // namespace

std::shared_ptr<const Layer> make_conv2d(const Conv2DOptions& options) {
  return std::make_shared<const Conv2D>(options);
}

void add_conv2d(Registry<Layer>& table) {
  table.add<Conv2D>("conv2d", conv2d_schema());
}

}  // namespace dtrain
