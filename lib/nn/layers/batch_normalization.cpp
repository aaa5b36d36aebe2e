#include <algorithm>

#include "nn/layers/common.h"
#include "nn/layers/table.h"

namespace dtrain {
namespace {

struct BatchNormalizationOptions {
  double momentum = 0.99;
  double epsilon = 1e-3;
  bool center = true;
  bool scale = true;
  Configured<Initializer> beta_initializer = registry<Initializer>().make("zeros");
  Configured<Initializer> gamma_initializer = registry<Initializer>().make("ones");
  Configured<Initializer> moving_mean_initializer = registry<Initializer>().make("zeros");
  Configured<Initializer> moving_variance_initializer = registry<Initializer>().make("ones");

  static const Schema<BatchNormalizationOptions>& schema() {
    using O = BatchNormalizationOptions;
    static const auto schema =
        Schema<O>(
            "Every channel to mean 0 and variance 1, then scaled and shifted: in training by the batch's own "
            "mean and variance, else (and where `trainable: false`) by their moving averages.")
            .example("{momentum: 0.9}")
            .optional("momentum", &O::momentum, "what a moving average keeps of itself in a step",
                      between(0.0, 1.0))
            .optional("epsilon", &O::epsilon, "added to the variance", greater_than(0.0))
            .optional("center", &O::center, "shift by a trained beta")
            .optional("scale", &O::scale, "scale by a trained gamma")
            .optional("beta_initializer", &O::beta_initializer, "how beta begins")
            .optional("gamma_initializer", &O::gamma_initializer, "how gamma begins")
            .optional("moving_mean_initializer", &O::moving_mean_initializer, "how the mean's average begins")
            .optional("moving_variance_initializer", &O::moving_variance_initializer,
                      "how the variance's average begins")
            .details({"momentum", "epsilon", "center", "scale", "beta_initializer", "gamma_initializer",
                      "moving_mean_initializer", "moving_variance_initializer"});
    return schema;
  }
};

/// The parameters of a call, or their gradients, by name; null where the options leave one out.
template <class Pointer>
struct Parts {
  Pointer gamma = nullptr, beta = nullptr, mean = nullptr, variance = nullptr;
};

template <class Pointer>
Parts<Pointer> parts_of(const std::vector<Pointer>& parameters, const BatchNormalizationSpec& spec) {
  auto next = parameters.begin();
  Parts<Pointer> parts;
  if (spec.scale) parts.gamma = *next++;
  if (spec.center) parts.beta = *next++;
  parts.mean = *next++;
  parts.variance = *next;
  return parts;
}

/// By the batch's own statistics, which lie behind what the op saves.
class PreparedTraining : public PreparedLayer {
 public:
  PreparedTraining(const LayerRequest& request, const BatchNormalizationSpec& spec)
      : ops_(request.ops), spec_(spec), op_(request.ops.batch_normalization(spec)) {
    requirements_.input_layouts = {spec.layout};
    requirements_.output_layouts = {spec.layout};
    saved_by_op_ = aligned(op_->saved_bytes());
    requirements_.saved_bytes = saved_by_op_ + 2 * static_cast<size_t>(spec.channels) * sizeof(float);
    // The op always gives the gradient of its source; where nobody wants it, it goes into scratch.
    scratch_of_op_ = aligned(op_->scratch_bytes());
    const auto elements = static_cast<size_t>(batch_elements(request, request.output().shape));
    requirements_.scratch_bytes =
        scratch_of_op_ +
        (request.input_needs_gradient[0] ? 0 : elements * bytes_of(request.ops.compute_type()));
    requirements_.backward_reads_inputs = true;
    requirements_.backward_in_place = true;
    requirements_.undoes_activation = spec.relu;
  }

  void forward(const LayerArguments& args) override {
    const auto parts = parts_of(args.parameters, spec_);
    op_->forward_training({.src = args.input(),
                           .gamma = parts.gamma,
                           .beta = parts.beta,
                           .dst = args.output(),
                           .mean = mean(args),
                           .variance = variance(args),
                           .saved = args.saved,
                           .scratch = args.scratch});
  }

  void backward(const LayerArguments& args) override {
    const auto parts = parts_of(args.parameters, spec_);
    const auto diffs = parts_of(args.diff_parameters, spec_);
    void* diff_src = args.diff_inputs[0];
    if (!diff_src) diff_src = static_cast<char*>(args.scratch) + scratch_of_op_;
    op_->backward({.src = args.input(),
                   .gamma = parts.gamma,
                   .mean = mean(args),
                   .variance = variance(args),
                   .diff_dst = args.diff_output(),
                   .diff_src = diff_src,
                   .diff_gamma = diffs.gamma,
                   .diff_beta = diffs.beta,
                   .saved = args.saved,
                   .scratch = args.scratch});
    ops_.scale_add(diffs.mean, mean(args), args.share, 0, spec_.channels);
    ops_.scale_add(diffs.variance, variance(args), args.share, 0, spec_.channels);
  }

 private:
  static size_t aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }
  static float* floats(void* base, size_t offset) {
    return reinterpret_cast<float*>(static_cast<char*>(base) + offset);
  }
  float* mean(const LayerArguments& args) const { return floats(args.saved, saved_by_op_); }
  float* variance(const LayerArguments& args) const { return mean(args) + spec_.channels; }

  Ops& ops_;
  BatchNormalizationSpec spec_;
  std::unique_ptr<BatchNormalization> op_;
  size_t saved_by_op_ = 0, scratch_of_op_ = 0;
};

/// By the moving averages: at inference, and in training where the layer is frozen. Then it is an affine map,
/// whose gradient is the map without its shifts.
class PreparedFrozen : public PreparedLayer {
 public:
  PreparedFrozen(const LayerRequest& request, BatchNormalizationSpec spec)
      : spec_(spec), op_(request.ops.batch_normalization(spec)) {
    requirements_.input_layouts = {spec.layout};
    requirements_.output_layouts = {spec.layout};
    requirements_.scratch_bytes = op_->scratch_bytes();
    if (!request.training) return;
    spec.center = spec.relu = false;
    gradient_ = request.ops.batch_normalization(spec);
    zeros_ = request.ops.context().allocate(static_cast<size_t>(spec.channels) * sizeof(float));
    requirements_.scratch_bytes = std::max(requirements_.scratch_bytes, gradient_->scratch_bytes());
  }

  void forward(const LayerArguments& args) override {
    const auto parts = parts_of(args.parameters, spec_);
    op_->forward_inference({.src = args.input(),
                            .gamma = parts.gamma,
                            .beta = parts.beta,
                            .mean = parts.mean,
                            .variance = parts.variance,
                            .dst = args.output(),
                            .scratch = args.scratch});
  }

  void backward(const LayerArguments& args) override {
    const auto parts = parts_of(args.parameters, spec_);
    if (args.diff_inputs[0])
      gradient_->forward_inference({.src = args.diff_output(),
                                    .gamma = parts.gamma,
                                    .beta = nullptr,
                                    .mean = zeros_.f32(),
                                    .variance = parts.variance,
                                    .dst = args.diff_inputs[0],
                                    .scratch = args.scratch});
  }

 private:
  BatchNormalizationSpec spec_;
  std::unique_ptr<BatchNormalization> op_, gradient_;
  Buffer zeros_;
};

class BatchNormalizationLayer : public LayerWith<BatchNormalizationOptions> {
 public:
  using LayerWith::LayerWith;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs,
                                const ReportError& report_error) const override {
    return same_as(float_input_with_axis(inputs, "of channels", report_error));
  }

  std::vector<ParameterSpec> parameters(std::span<const TensorSpec> inputs) const override {
    const Shape channels{inputs[0].shape.back()};
    const auto momentum = static_cast<float>(options_.momentum);
    std::vector<ParameterSpec> specs;
    if (options_.scale) specs.push_back({"gamma", channels, options_.gamma_initializer, {}});
    if (options_.center) specs.push_back({"beta", channels, options_.beta_initializer, {}});
    specs.push_back({"moving_mean", channels, options_.moving_mean_initializer, momentum});
    specs.push_back({"moving_variance", channels, options_.moving_variance_initializer, momentum});
    return specs;
  }

  std::unique_ptr<PreparedLayer> prepare(const LayerRequest& request) const override {
    const Shape& shape = request.inputs[0].shape;
    const bool image = shape.rank() == 3;
    BatchNormalizationSpec spec{.batch = request.batch,
                                .height = image ? shape[0] : shape.elements() / shape.back(),
                                .width = image ? shape[1] : 1,
                                .channels = shape.back(),
                                .epsilon = static_cast<float>(options_.epsilon),
                                .scale = options_.scale,
                                .center = options_.center,
                                .relu = request.activation.kind == Activation::relu,
                                .layout = image ? request.input_layouts[0] : Layout::plain,
                                .training = trains_parameters(request)};
    if (spec.training) return std::make_unique<PreparedTraining>(request, spec);
    return std::make_unique<PreparedFrozen>(request, spec);
  }

  bool can_fuse(const ActivationSpec& spec) const override { return spec.kind == Activation::relu; }
  std::string keras_class() const override { return "BatchNormalization"; }
};

}  // namespace

void add_batch_normalization(Registry<Layer>& table) {
  table.add<BatchNormalizationLayer>("batch_normalization", BatchNormalizationOptions::schema());
}

}  // namespace dtrain
