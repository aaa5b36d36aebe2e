// The layers conv2d and conv3d.
#include "nn/layers/convolution/conv2d.h"

#include <fmt/format.h>

#include "nn/layers/activations/activation.h"
#include "nn/layers/common.h"
#include "nn/layers/convolution/convolution.h"
#include "nn/layers/convolution/groups.h"
#include "nn/layers/space.h"
#include "nn/layers/table.h"

namespace dtrain {
namespace {

/// Returns the schema of the options that describe the window.
template <class Size>
Schema<ConvOptions<Size>> window_schema() {
  using O = ConvOptions<Size>;
  using Of = Space<Size>;
  return Schema<O>(
             fmt::format("A convolution of {0}s. The input has the shape [{1}, channels]. The output has "
                         "`filters` channels.",
                         Of::kName, Of::kAxes))
      .example("{filters: 32, kernel_size: 3, padding: same, activation: relu}")
      .required("filters", &O::filters, "number of channels of the output", extent())
      .required("kernel_size", &O::kernel_size, "size of the kernel")
      .optional(
          "strides", &O::strides,
          fmt::format(
              "stride of the kernel: the distance between neighboring positions of the kernel in the {}",
              Of::kName))
      .optional("padding", &O::padding,
                fmt::format("Padding of the {0}. With `valid`, there is no padding. With `same`, zeros "
                            "are added around the {0}, so that the output's size is ceil(size / stride).",
                            Of::kName))
      .optional("dilation_rate", &O::dilation_rate,
                "dilation of the kernel: the distance between its neighboring elements in the input");
}

/// `kind` is the name of the layer.
template <class Size>
const Schema<ConvOptions<Size>>& conv_schema(const std::string& kind) {
  static const Schema<ConvOptions<Size>> schema =
      with_kernel_and_bias(with_groups(window_schema<Size>(), kind),
                           fmt::format("{}, channels / groups, filters", Space<Size>::kAxes))
          .details({"activation", "use_bias", "groups"});
  return schema;
}

template <class Size>
class Conv : public LayerWith<ConvOptions<Size>> {
 public:
  using LayerWith<ConvOptions<Size>>::LayerWith;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs,
                                const ReportError& report_error) const override {
    const TensorSpec* input = Space<Size>::kInput(inputs, report_error);
    if (!input || spreads_too_far(window(), "kernel_size", *input, report_error) ||
        !fits(window(), "kernel_size", *input, report_error) ||
        !has_whole_groups(*input, options_.groups, options_.filters, report_error))
      return {};
    return {TensorSpec{{}, window_positions(window(), input->shape, options_.filters), DType::float32}};
  }

  std::vector<ParameterSpec> parameters(std::span<const TensorSpec> inputs) const override {
    const Shape kernel(
        extents_with(options_.kernel_size, {inputs[0].shape.back() / options_.groups, options_.filters}));
    return options_.parameters(kernel, options_.filters);
  }

  std::unique_ptr<PreparedLayer> prepare(const LayerRequest& request) const override {
    ConvolutionSpec spec = convolution_spec(window(), request, request.inputs[0].shape, options_.filters);
    spec.bias = options_.use_bias;
    spec.groups = options_.groups;
    spec.depthwise = spec.groups > 1 && spec.groups == spec.channels && !spec.is_volume();
    return std::make_unique<PreparedConvolution>(request, spec);
  }

  Configured<Layer> activation() const override { return activation_layer(options_.activation); }
  bool can_fuse(const ActivationSpec& spec) const override { return from_output(spec); }

 private:
  using LayerWith<ConvOptions<Size>>::options_;

  Window window() const {
    return {options_.kernel_size, options_.strides, options_.dilation_rate, options_.padding};
  }
};

}  // namespace

std::shared_ptr<const Layer> make_conv2d(const ConvOptions<Size2>& options) {
  return std::make_shared<const Conv<Size2>>(options);
}

void add_conv2d(Registry<Layer>& table) {
  table.add<Conv<Size2>>("conv2d", conv_schema<Size2>("conv2d"));
}

void add_conv3d(Registry<Layer>& table) {
  table.add<Conv<Size3>>("conv3d", conv_schema<Size3>("conv3d"));
}

}  // namespace dtrain
