#include <algorithm>

#include "nn/layers/normalization/scale_and_shift.h"
#include "nn/layers/table.h"
#include "ops/math/normalization.h"

namespace dtrain {
namespace {

struct BatchNormalizationOptions : ScaleAndShift {
  double momentum = 0.99;
  double epsilon = 1e-3;
  Configured<Initializer> moving_mean_initializer = registry<Initializer>().make("zeros");
  Configured<Initializer> moving_variance_initializer = registry<Initializer>().make("ones");
  bool synchronized = false;

  static const Schema<BatchNormalizationOptions>& schema() {
    using O = BatchNormalizationOptions;
    static const auto schema =
        with_scale_and_shift(
            Schema<O>("Normalizes every channel to mean 0 and variance 1, then scales and shifts it. "
                      "Training uses the mean and the variance of the current batch, and masked positions "
                      "are not counted. Evaluation, prediction and layers with `trainable: false` use the "
                      "moving averages of the mean and the variance.")
                .example("{momentum: 0.9}")
                .optional("momentum", &O::momentum,
                          "Momentum of the moving averages. In each update, the old value has the weight "
                          "momentum, and the value of the batch has the weight 1 - momentum.",
                          between(0.0, 1.0))
                .optional("epsilon", &O::epsilon,
                          "small number that is added to the variance to avoid division by 0",
                          greater_than(0.0)))
            .optional("moving_mean_initializer", &O::moving_mean_initializer,
                      "initial value of the moving mean")
            .optional("moving_variance_initializer", &O::moving_variance_initializer,
                      "initial value of the moving variance")
            .optional("synchronized", &O::synchronized,
                      "If true, training computes the mean and the variance over the rows of all replicas, "
                      "as on a single device. If false, each replica uses only its own rows.")
            .details({"momentum", "epsilon", "center", "scale", "moving_mean_initializer",
                      "moving_variance_initializer", "synchronized"});
    return schema;
  }
};

/// Pointers to the parameters of a call, or to the gradients of these parameters. A pointer is null if the
/// options disable the parameter.
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

size_t aligned(size_t bytes) {
  return (bytes + 63) / 64 * 64;
}

/// Base class of computations that normalize by statistics of the batch. The saved memory contains the saved
/// bytes of the operation, followed by the mean and the variance.
class PreparedByBatch : public PreparedLayer {
 protected:
  PreparedByBatch(const LayerRequest& request, const BatchNormalizationSpec& spec, size_t saved_by_op)
      : ops_(request.ops), spec_(spec), saved_by_op_(aligned(saved_by_op)) {
    requirements_.input_layouts = {spec.layout};
    requirements_.output_layouts = {spec.layout};
    requirements_.saved_bytes = saved_by_op_ + 2 * static_cast<size_t>(spec.channels) * sizeof(float);
    requirements_.backward_reads_inputs = true;
    requirements_.backward_in_place = true;
    requirements_.undoes_activation = spec.relu && !spec.adds;
  }

  BatchNormalization::TrainingArguments forward_arguments(const LayerArguments& args) const {
    const auto parts = parts_of(args.parameters, spec_);
    return {.src = args.input(),
            .gamma = parts.gamma,
            .beta = parts.beta,
            .dst = args.output(),
            .mean = mean(args),
            .variance = variance(args),
            .saved = args.saved,
            .scratch = args.scratch,
            .addend = args.addend,
            .mask = args.mask()};
  }
  BatchNormalization::BackwardArguments backward_arguments(const LayerArguments& args, void* diff_src) const {
    const auto parts = parts_of(args.parameters, spec_);
    const auto diffs = parts_of(args.diff_parameters, spec_);
    return {.src = args.input(),
            .gamma = parts.gamma,
            .mean = mean(args),
            .variance = variance(args),
            .diff_dst = args.diff_output(),
            .diff_src = diff_src,
            .diff_gamma = diffs.gamma,
            .diff_beta = diffs.beta,
            .diff_mean = diffs.mean,
            .diff_variance = diffs.variance,
            .share = args.share,
            .saved = args.saved,
            .scratch = args.scratch,
            .mask = args.mask()};
  }
  Ops& ops_;
  const BatchNormalizationSpec spec_;

 private:
  float* mean(const LayerArguments& args) const {
    return reinterpret_cast<float*>(static_cast<char*>(args.saved) + saved_by_op_);
  }
  float* variance(const LayerArguments& args) const { return mean(args) + spec_.channels; }

  const size_t saved_by_op_;
};

/// Normalizes by the statistics of all rows of this replica.
class PreparedTraining : public PreparedByBatch {
 public:
  PreparedTraining(const LayerRequest& request, const BatchNormalizationSpec& spec)
      : PreparedTraining(request, spec, request.ops.batch_normalization(spec)) {}

  void forward(const LayerArguments& args) override { op_->forward_training(forward_arguments(args)); }

  void backward(const LayerArguments& args) override {
    void* diff_src = args.diff_inputs[0];
    if (!diff_src) diff_src = static_cast<char*>(args.scratch) + scratch_of_op_;
    op_->backward(backward_arguments(args, diff_src));
  }

 private:
  PreparedTraining(const LayerRequest& request, const BatchNormalizationSpec& spec,
                   std::unique_ptr<BatchNormalization> op)
      : PreparedByBatch(request, spec, op->saved_bytes()),
        op_(std::move(op)),
        scratch_of_op_(aligned(op_->scratch_bytes())) {
    // The operation always computes the gradient of its source. If the gradient of the input is not needed,
    // it is written to scratch memory and ignored.
    const auto elements = static_cast<size_t>(batch_elements(request, request.output().shape));
    requirements_.scratch_bytes =
        scratch_of_op_ +
        (request.input_needs_gradient[0] ? 0 : elements * bytes_of(request.ops.compute_type()));
  }

  std::unique_ptr<BatchNormalization> op_;
  size_t scratch_of_op_;
};

/// Normalizes by the statistics of the rows that are not masked, over all replicas or over one replica. Each
/// replica computes the moments (such as the mean) of its rows. If the statistics are over all replicas, an
/// all-gather exchanges the moments, and each replica combines the moments of all replicas. The gradients of
/// gamma and beta are computed from the replica's own rows, because the gradient synchronization sums them
/// like all other gradients. With one replica there is no all-gather, but the operations are the same.
/// Therefore, rounding differences between one and several replicas remain small. This is important because a
/// subsequent relu could amplify the differences.
class PreparedSynchronized : public PreparedByBatch {
 public:
  /// `replicas` is null if the statistics are computed over the rows of this replica only.
  PreparedSynchronized(const LayerRequest& request, const BatchNormalizationSpec& spec, Collective* replicas)
      : PreparedSynchronized(request, spec, replicas,
                             request.ops.synchronized_batch_normalization(spec, count(replicas))) {}

  void forward(const LayerArguments& args) override {
    const auto call = forward_arguments(args);
    op_->moments(call, mine(args));
    op_->forward(call, gather(args, requirements_.forward_gathered));
  }

  void backward(const LayerArguments& args) override {
    const auto call = backward_arguments(args, args.diff_inputs[0]);
    op_->gradient_sums(call, mine(args));
    if (call.diff_src) op_->backward(call, gather(args, requirements_.backward_gathered));
  }

 private:
  PreparedSynchronized(const LayerRequest& request, const BatchNormalizationSpec& spec, Collective* replicas,
                       std::unique_ptr<SynchronizedBatchNormalization> op)
      : PreparedByBatch(request, spec, op->saved_bytes()),
        replicas_(count(replicas) > 1 ? replicas : nullptr),
        op_(std::move(op)),
        scratch_of_op_(aligned(op_->scratch_bytes())) {
    const int64_t most_numbers = math::moments_size(spec.channels);
    requirements_.scratch_bytes =
        scratch_of_op_ + static_cast<size_t>((1 + count(replicas)) * most_numbers) * sizeof(double);
    if (!replicas_) return;
    requirements_.forward_gathered = most_numbers;
    if (request.input_needs_gradient[0])
      requirements_.backward_gathered = math::gradient_sums_size(spec.channels);
  }

  static int count(const Collective* replicas) { return replicas ? replicas->size() : 1; }

  /// Returns the array of this replica's moments or gradient sums. The scratch memory contains, in this
  /// order: the scratch memory of the operation, the array of this replica, and the gathered arrays of all
  /// replicas.
  double* mine(const LayerArguments& args) const {
    return reinterpret_cast<double*>(static_cast<char*>(args.scratch) + scratch_of_op_);
  }
  const double* gather(const LayerArguments& args, int64_t numbers) {
    if (!replicas_) return mine(args);
    double* const all = mine(args) + math::moments_size(spec_.channels);
    all_gather(*replicas_, ops_.context(), mine(args), all, numbers);
    return all;
  }

  Collective* replicas_;  // null if the statistics are over one replica, so there is no all-gather
  std::unique_ptr<SynchronizedBatchNormalization> op_;
  size_t scratch_of_op_;
};

/// Normalizes by the moving averages. This is used for inference, and for training if the layer is frozen.
/// Forward multiplies each channel by a factor and adds an offset, so backward multiplies the gradient by the
/// same factor.
class PreparedFrozen : public PreparedLayer {
 public:
  PreparedFrozen(const LayerRequest& request, BatchNormalizationSpec spec)
      : spec_(spec), op_(request.ops.batch_normalization(spec)) {
    requirements_.input_layouts = {spec.layout};
    requirements_.output_layouts = {spec.layout};
    requirements_.scratch_bytes = op_->scratch_bytes();
    if (!request.training) return;
    spec.center = spec.relu = spec.adds = false;
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
                            .scratch = args.scratch,
                            .addend = args.addend});
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
    std::vector<ParameterSpec> specs = options_.parameters(channels);
    specs.push_back({"moving_mean", channels, options_.moving_mean_initializer, momentum});
    specs.push_back({"moving_variance", channels, options_.moving_variance_initializer, momentum});
    return specs;
  }

  std::unique_ptr<PreparedLayer> prepare(const LayerRequest& request) const override {
    const Shape& shape = request.inputs[0].shape;
    const bool image = shape.rank() == 3, volume = shape.rank() == 4;
    BatchNormalizationSpec spec{.batch = request.batch,
                                .height = image ? shape[0] : shape.elements() / shape.back(),
                                .width = image ? shape[1] : 1,
                                .channels = shape.back(),
                                .epsilon = static_cast<float>(options_.epsilon),
                                .scale = options_.scale,
                                .center = options_.center,
                                .relu = request.activation.kind == Activation::relu,
                                .adds = request.adds,
                                .layout = image || volume ? request.input_layouts[0] : Layout::plain,
                                .training = trains_parameters(request)};
    spec.masked = spec.training && request.is_masked(0);
    if (spec.masked) spec.layout = Layout::plain;
    if (spec.training && options_.synchronized)
      return std::make_unique<PreparedSynchronized>(request, spec, request.replicas);
    if (spec.masked) return std::make_unique<PreparedSynchronized>(request, spec, nullptr);
    if (spec.training) return std::make_unique<PreparedTraining>(request, spec);
    return std::make_unique<PreparedFrozen>(request, spec);
  }

  bool can_fuse(const ActivationSpec& spec) const override { return spec.kind == Activation::relu; }
  bool can_add(const Ops& ops, const ActivationSpec& spec) const override {
    return ops.adds_in_normalization() && !options_.synchronized &&
           (spec.kind == Activation::relu || spec.kind == Activation::linear);
  }
  bool is_synchronized() const override { return options_.synchronized; }
  /// Masked rows do not count in the statistics. The output has the mask of the input.
  MaskRule mask_rule() const override { return MaskRule::read; }
  bool masks_output(size_t) const override { return true; }
};

}  // namespace

void add_batch_normalization(Registry<Layer>& table) {
  table.add<BatchNormalizationLayer>("batch_normalization", BatchNormalizationOptions::schema());
}

}  // namespace dtrain
