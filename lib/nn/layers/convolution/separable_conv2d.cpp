#include <algorithm>
#include <cstddef>

#include "nn/layers/activations/activation.h"
#include "nn/layers/array_offsets.h"
#include "nn/layers/common.h"
#include "nn/layers/convolution/convolution.h"
#include "nn/layers/table.h"
#include "nn/layers/weight_options.h"

namespace dtrain {
namespace {

struct SeparableOptions {
  int64_t filters = 0;
  Size2 kernel_size;
  Size2 strides;
  Border padding = Border::valid;
  Size2 dilation_rate;
  int64_t depth_multiplier = 1;
  OptionalActivation activation;
  bool use_bias = true;
  WeightOptions depthwise{registry<Initializer>().make("glorot_uniform")};
  WeightOptions pointwise{registry<Initializer>().make("glorot_uniform")};
  WeightOptions bias{registry<Initializer>().make("zeros")};

  static const Schema<SeparableOptions>& schema() {
    using O = SeparableOptions;
    static const auto schema =
        Schema<O>(
            "A depthwise separable convolution of images. It consists of a depthwise convolution, which "
            "convolves each channel separately, and a pointwise convolution, which mixes the channels with a "
            "1x1 kernel.")
            .example("{filters: 32, kernel_size: 3, padding: same, activation: relu}")
            .required("filters", &O::filters, "number of channels of the output", extent())
            .required("kernel_size", &O::kernel_size, "size of the depthwise kernel")
            .optional(
                "strides", &O::strides,
                "stride of the depthwise kernel: the distance between its neighboring positions in the image")
            .optional("padding", &O::padding,
                      "Padding of the image. With `valid`, there is no padding. With `same`, zeros are added "
                      "around the image, so that the output's size is ceil(size / stride).")
            .optional("dilation_rate", &O::dilation_rate,
                      "dilation of the depthwise kernel: the distance between its neighboring elements in "
                      "the image")
            .optional("depth_multiplier", &O::depth_multiplier,
                      "number of output channels of the depthwise convolution for each input channel",
                      extent())
            .optional("activation", &O::activation, "activation function of the output")
            .optional("use_bias", &O::use_bias, "whether to add a bias")
            .part("depthwise_", &O::depthwise,
                  weight_schema("the depthwise kernel of shape [height, width, channels, depth_multiplier]"))
            .part("pointwise_", &O::pointwise,
                  weight_schema("the pointwise kernel of shape [1, 1, channels * depth_multiplier, filters]"))
            .part("bias_", &O::bias, weight_schema("the bias"))
            .details({"activation", "use_bias"});
    return schema;
  }
};

/// The parameters are the depthwise kernel, the pointwise kernel and, optionally, the bias. The image between
/// the two convolutions has the layout that the pointwise convolution reads. In training, it is saved from
/// forward to backward.
class PreparedSeparable : public PreparedLayer {
 public:
  PreparedSeparable(const LayerRequest& request, const ConvolutionSpec& depthwise,
                    const ConvolutionSpec& pointwise, const Shape& between)
      : by_data_(depthwise.needs_diff_src),
        by_filter_(trains_parameters(request)),
        use_bias_(pointwise.bias),
        depthwise_(request.ops.convolution(depthwise)),
        pointwise_(request.ops.convolution(pointwise)) {
    const Layout made = depthwise_->dst_layout(), read = pointwise_->src_layout();
    const size_t bytes = static_cast<size_t>(between.elements()) * bytes_of(request.ops.compute_type());
    ArrayOffsets saved, scratch;
    kept_ = (request.training ? saved : scratch).add(bytes);
    is_kept_ = request.training;
    depthwise_saved_ = saved.add(depthwise_->saved_bytes());
    pointwise_saved_ = saved.add(pointwise_->saved_bytes());
    if (request.training) gradient_ = scratch.add(bytes);
    if (made != read) {
      other_layout_ = scratch.add(bytes);
      to_pointwise_ = request.ops.reorder(between, made, read);
      to_depthwise_ = request.ops.reorder(between, read, made);
    }
    own_scratch_ = scratch.add(std::max(depthwise_->scratch_bytes(), pointwise_->scratch_bytes()));
    requirements_.input_layouts = {depthwise_->src_layout()};
    requirements_.output_layouts = {pointwise_->dst_layout()};
    requirements_.scratch_bytes = scratch.bytes();
    requirements_.saved_bytes = request.training ? saved.bytes() : 0;
    requirements_.remarks = depthwise_->remarks();
    requirements_.backward_reads_inputs = by_filter_;
    if (by_filter_ && use_bias_ && !pointwise_->computes_bias_gradient()) requirements_.bias = 2;
  }

  void forward(const LayerArguments& args) override {
    void* const scratch = array_at(args.scratch, own_scratch_);
    void* const between = array_at(is_kept_ ? args.saved : args.scratch, kept_);
    void* const made = to_pointwise_ ? array_at(args.scratch, other_layout_) : between;
    depthwise_->forward(args.input(), args.weights[0], nullptr, made, saved(args, depthwise_saved_), scratch);
    if (to_pointwise_) to_pointwise_->run(made, between);
    pointwise_->forward(between, args.weights[1], use_bias_ ? args.weights[2] : nullptr, args.output(),
                        saved(args, pointwise_saved_), scratch);
  }

  void backward(const LayerArguments& args) override {
    void* const scratch = array_at(args.scratch, own_scratch_);
    void* gradient = array_at(args.scratch, gradient_);
    if (by_filter_)
      pointwise_->backward_filter(
          array_at(args.saved, kept_), args.diff_output(), args.diff_parameters[1],
          use_bias_ && pointwise_->computes_bias_gradient() ? args.diff_parameters[2] : nullptr, scratch);
    if (!by_filter_ && !by_data_) return;
    pointwise_->backward_data(args.diff_output(), args.weights[1], gradient, saved(args, pointwise_saved_),
                              scratch);
    if (to_depthwise_) {
      void* const other = array_at(args.scratch, other_layout_);
      to_depthwise_->run(gradient, other);
      gradient = other;
    }
    if (by_filter_)
      depthwise_->backward_filter(args.input(), gradient, args.diff_parameters[0], nullptr, scratch);
    if (by_data_)
      depthwise_->backward_data(gradient, args.weights[0], args.diff_inputs[0], saved(args, depthwise_saved_),
                                scratch);
  }

 private:
  void* saved(const LayerArguments& args, size_t offset) const {
    return is_kept_ ? array_at(args.saved, offset) : nullptr;
  }

  bool by_data_, by_filter_, use_bias_, is_kept_ = false;
  std::unique_ptr<Convolution> depthwise_, pointwise_;
  std::unique_ptr<Reorder> to_pointwise_, to_depthwise_;  // null if the layouts are the same
  // Offsets in the saved memory. If is_kept_ is false, kept_ is an offset in the scratch memory.
  size_t kept_ = 0, depthwise_saved_ = 0, pointwise_saved_ = 0;
  size_t gradient_ = 0, other_layout_ = 0, own_scratch_ = 0;  // offsets in the scratch memory
};

class SeparableConv2D : public LayerWith<SeparableOptions> {
 public:
  using LayerWith::LayerWith;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs,
                                const ReportError& report_error) const override {
    const TensorSpec* input = image_input(inputs, report_error);
    if (!input || spreads_too_far(window(), "kernel_size", *input, report_error) ||
        !fits(window(), "kernel_size", *input, report_error))
      return {};
    return {TensorSpec{{}, window_positions(window(), input->shape, options_.filters), DType::float32}};
  }

  std::vector<ParameterSpec> parameters(std::span<const TensorSpec> inputs) const override {
    const auto [height, width] = options_.kernel_size;
    std::vector<ParameterSpec> specs = {
        options_.depthwise.parameter("depthwise_kernel",
                                     {height, width, inputs[0].shape[2], options_.depth_multiplier}),
        options_.pointwise.parameter("pointwise_kernel",
                                     {1, 1, channels_between(inputs[0].shape), options_.filters})};
    if (options_.use_bias) specs.push_back(options_.bias.parameter("bias", {options_.filters}));
    return specs;
  }

  std::unique_ptr<PreparedLayer> prepare(const LayerRequest& request) const override {
    const Shape& image = request.inputs[0].shape;
    const Shape between = window_positions(window(), image, channels_between(image));
    ConvolutionSpec depthwise = convolution_spec(window(), request, image, between[2]);
    depthwise.depthwise = true;
    depthwise.activation = {};
    ConvolutionSpec pointwise = convolution_spec({}, request, between, options_.filters);
    pointwise.bias = options_.use_bias;
    pointwise.needs_diff_src = depthwise.needs_diff_src || trains_parameters(request);
    return std::make_unique<PreparedSeparable>(request, depthwise, pointwise,
                                               between.prepended(request.batch));
  }

  Configured<Layer> activation() const override { return activation_layer(options_.activation); }
  bool can_fuse(const ActivationSpec& spec) const override { return from_output(spec); }

 private:
  Window window() const {
    return {options_.kernel_size, options_.strides, options_.dilation_rate, options_.padding};
  }
  int64_t channels_between(const Shape& image) const { return image[2] * options_.depth_multiplier; }
};

}  // namespace

void add_separable_conv2d(Registry<Layer>& table) {
  table.add<SeparableConv2D>("separable_conv2d", SeparableOptions::schema());
}

}  // namespace dtrain
