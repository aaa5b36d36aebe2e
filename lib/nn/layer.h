// Layer: options, shape inference and parameters. PreparedLayer: the computation for one batch size. Every
// layer has at least one output.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/tensor_spec.h"
#include "base/view.h"
#include "collective/collective.h"
#include "config/diagnostics.h"
#include "config/registry.h"
#include "nn/constraint.h"
#include "nn/initializer.h"
#include "nn/regularizer.h"
#include "ops/ops.h"

namespace dtrain {

/// The training options of one parameter. They differ from the defaults only if `train.groups` selects the
/// parameter.
struct ParameterTraining {
  bool trainable = true;  // false: the parameter is constant and has no optimizer state
  float learning_rate_factor = 1;
  std::optional<float> weight_decay;  // used instead of the optimizer's weight decay
  bool operator==(const ParameterTraining&) const = default;
};

/// A parameter as its layer declares it. Shapes follow Keras's weight layouts.
struct ParameterSpec {
  std::string name;  // "kernel"
  Shape shape;
  Configured<Initializer> initializer;
  /// If not set, the parameter is trained by gradients. If set, it is a moving statistic with this momentum,
  /// updated as state = momentum * state + (1 - momentum) * batch value. Backward (or forward) writes the
  /// batch value, weighted by the replica's share of the global batch, as the parameter's "gradient".
  std::optional<float> moving_average;
  ParameterTraining training = {};
  PenaltySpec penalty = {};                                // part of the loss while the parameter is trained
  std::shared_ptr<const Constraint> constraint = nullptr;  // applied after each update; null: none
  OrthogonalPenalty orthogonal = {};                       // also part of the loss

  bool has_penalty() const { return penalty || orthogonal; }
};

/// The treatment of the masks of a layer's inputs. As in Keras, a mask marks the valid positions of a value:
/// uint8 with the value's leading extents, such as [steps]; 1 for a valid position, 0 for padding.
enum class MaskRule : uint8_t {
  refused,  // the layer cannot take padding into account: a mask is an error
  passed,   // computes each position by itself: the outputs have the mask of the inputs
  read,     // the prepared layer reads the masks (LayerArguments::masks)
};

/// The arguments of Layer::prepare().
struct LayerRequest {
  Ops& ops;
  int64_t batch;                          // rows of this replica, at least 1
  bool training;                          // whether backward will be called
  std::span<const TensorSpec> inputs;     // shapes without the batch axis
  std::span<const TensorSpec> outputs;    // the result of Layer::infer()
  std::span<const Layout> input_layouts;  // current layouts of the inputs; the layer may require others
  ActivationSpec activation;              // fused after the first output; linear unless can_fuse() is true
  /// Whether forward adds args.addend to the first output before the activation, which requires can_add().
  /// The sum belongs to an add layer, whose node handles the gradient.
  bool adds = false;
  std::vector<bool> input_needs_gradient;
  std::vector<bool> masked = {};  // indexed by input: whether the layer gets a mask; empty: no input has one
  uint32_t stream = 0;            // random stream of this node
  bool trainable = true;  // false: parameters are constant, batch normalization uses its moving statistics
  Collective* replicas = nullptr;  // for collectives within a call; null if there is one replica

  const TensorSpec& output() const { return outputs[0]; }  // for layers with one output
  bool is_masked(size_t input) const { return input < masked.size() && masked[input]; }
};

/// A prepared layer's properties that the plan needs.
struct LayerRequirements {
  /// Layouts that the layer reads and writes; empty: all plain. The plan reorders inputs in other layouts.
  std::vector<Layout> input_layouts, output_layouts;
  size_t scratch_bytes = 0;  // temporary memory during a call
  size_t saved_bytes = 0;    // memory kept from forward to backward
  bool backward_reads_inputs = false;
  bool backward_reads_outputs = false;
  /// Whether the only output is a view of the first input with another shape (flatten, reshape, dropout at
  /// inference). Forward and backward are then not called; values and gradients pass through.
  bool is_view = false;
  /// Whether the gradient of every input equals the gradient of the only output (add). Backward is then not
  /// called.
  bool passes_gradient = false;
  bool forward_in_place = false;   // whether the first output may overwrite the first input
  bool backward_in_place = false;  // whether the first input's gradient may overwrite the first output's
  /// Whether backward differentiates the fused activation itself (batch normalization). Otherwise it receives
  /// the gradient of the first output before the activation.
  bool undoes_activation = false;
  /// Index of the parameter that is a bias of the layer's only output; -1: none. The plan computes the bias
  /// gradient: it sums the output's gradient before the activation over all axes but the last, fused with the
  /// activation's backward if there is one. The layer's backward does not write it.
  int bias = -1;
  /// Number of doubles that each replica contributes to the all-gather within forward (backward); 0: no
  /// all-gather. Otherwise a call makes exactly one all-gather, of the same size for every batch size, so
  /// that a replica without rows can take part (Plan::join_collectives).
  int64_t forward_gathered = 0, backward_gathered = 0;
  Remarks remarks = {};

  Layout input_layout(size_t input) const {
    return input_layouts.empty() ? Layout::plain : input_layouts[input];
  }
  Layout output_layout(size_t output = 0) const {
    return output_layouts.empty() ? Layout::plain : output_layouts[output];
  }
};

/// The arrays of one call; the plan fills in the pointers. Images use the layouts of LayerRequirements.
/// Inputs, outputs and their gradients have the Ops' compute type, except integers.
struct LayerArguments {
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  std::vector<const float*> parameters;  // in the order of Layer::parameters
  std::vector<const void*> weights;      // the parameters in the compute type, for matrix products
  /// Gradients of the outputs. Null for an output that no loss depends on: its gradient is zero. backward is
  /// only called if at least one output has a gradient.
  std::vector<const void*> diff_outputs;
  std::vector<void*> diff_inputs;  // null if the gradient is not needed
  /// Gradients of the parameters, which backward overwrites; null if the layer is not trainable. For moving
  /// averages, see PreparedLayer; for biases, see LayerRequirements::bias.
  std::vector<float*> diff_parameters;
  std::vector<const uint8_t*> masks;  // indexed by input, null without a mask; empty: no input has one
  const void* addend = nullptr;       // set if LayerRequest::adds
  void* saved = nullptr;
  void* scratch = nullptr;

  uint64_t seed = 0;               // seed of the run
  const uint64_t* step = nullptr;  // global step, in device memory: dropout draws a new mask in each step
  uint64_t first_sample = 0;       // index of this replica's first sample in the global batch
  float share = 1;                 // this replica's fraction of the global batch

  // The arrays of layers with one input or one output.
  const void* input() const { return inputs[0]; }
  void* output() const { return outputs[0]; }
  const void* diff_output() const { return diff_outputs[0]; }
  const uint8_t* mask(size_t input = 0) const { return input < masks.size() ? masks[input] : nullptr; }
};

/// Returns the shape [n, height, width, channels] of a batch of images, as Ops::reorder expects it. Sequences
/// of shape [n, length, channels] become images of height 1; volumes of shape [n, depth, height, width,
/// channels] become images of height depth * height.
inline Shape image_batch(const Shape& batch) {
  if (batch.rank() == 5) return {batch[0], batch[1] * batch[2], batch[3], batch[4]};
  return batch.rank() == 3 ? Shape{batch[0], 1, batch[1], batch[2]} : batch;
}

/// One layer's computation for one batch size on one device. It is used by one replica's thread and allocates
/// no memory once prepared. backward writes the "gradients" of moving averages, which are never null in
/// training.
class PreparedLayer {
 public:
  virtual ~PreparedLayer() = default;
  const LayerRequirements& requirements() const { return requirements_; }
  virtual void forward(const LayerArguments& args) = 0;
  virtual void backward(const LayerArguments&) {}

 protected:
  LayerRequirements requirements_;
};

/// Reports an error at the layer's source location; the message is prefixed with the layer's kind and name
/// ("max_pooling2d 'pool1': ...").
using ReportError = std::function<void(const std::string& message)>;

/// A layer's options and everything that depends on them alone. Immutable; shared by all replicas.
class Layer {
 public:
  virtual ~Layer() = default;

  /// Returns the outputs' shapes (without the batch axis) and dtypes, at least one. If the inputs are
  /// invalid, reports the expected inputs and the inputs found, and returns an empty vector.
  virtual std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs,
                                        const ReportError& report_error) const = 0;
  /// Returns the parameters in the order of LayerArguments, for inputs that infer() accepted.
  virtual std::vector<ParameterSpec> parameters(std::span<const TensorSpec> /*inputs*/) const { return {}; }
  /// Returns the computation for one batch size on the device of `request`. Throws Unsupported if the
  /// device's libraries cannot do it.
  virtual std::unique_ptr<PreparedLayer> prepare(const LayerRequest& request) const = 0;

  /// Returns the `auto` node written in place of the size of the output's last axis; infer() cannot be called
  /// until the data determine that size. Returns null if the size is known.
  virtual ConfigNode open_units() const { return {}; }
  /// Returns the activation option (`activation: relu`), empty if there is none. The graph holds it as a node
  /// after the layer's first output; the plan fuses it if can_fuse() is true.
  virtual Configured<Layer> activation() const { return {}; }
  /// Returns whether the prepared layer can apply this elementwise activation to its first output.
  virtual bool can_fuse(const ActivationSpec&) const { return false; }
  /// Returns whether the prepared layer can add another value to its first output before this activation.
  virtual bool can_add(const Ops&, const ActivationSpec&) const { return false; }
  /// Returns whether the layer's output is the sum of its inputs.
  virtual bool is_sum() const { return false; }
  /// Returns the function of an elementwise activation layer; nullopt for all other layers.
  virtual std::optional<ActivationSpec> elementwise() const { return std::nullopt; }
  virtual bool is_softmax() const { return false; }
  /// Returns whether training needs collectives within forward and backward, because statistics are computed
  /// over the rows of all replicas.
  virtual bool is_synchronized() const { return false; }
  /// Returns whether `activity_regularizer` is a penalty on the outputs in Keras, too.
  virtual bool can_penalize_output() const { return true; }
  virtual MaskRule mask_rule() const { return MaskRule::refused; }
  /// For MaskRule::read, returns whether an output has the mask of the first input.
  virtual bool masks_output(size_t /*output*/) const { return false; }
  /// For layers that create a mask, returns the padding: a position is masked if all its elements in the
  /// input have this value.
  virtual std::optional<float> padding() const { return std::nullopt; }
  /// Returns whether the last output is the mask of the first one. Users do not see it as an output.
  bool creates_mask() const { return padding().has_value(); }
  /// Returns whether, in inference, each position of the outputs depends only on the same position of the
  /// inputs.
  virtual bool is_by_position() const { return mask_rule() == MaskRule::passed; }
  /// Returns the layer that computes one position of the output, for models that run position by position.
  /// The step layer's inputs are one position of each input of this layer, and the positions (int32
  /// scalars). The step layer stores the data of earlier positions that it needs. Returns null if outputs
  /// depend on later positions, or if the layer itself can be used (is_by_position()). `inputs`: the inputs
  /// of this layer for whole sequences.
  virtual std::shared_ptr<const Layer> step_layer(std::span<const TensorSpec> /*inputs*/) const {
    return nullptr;
  }
  /// Returns the number of elements that the step layer keeps for each sample.
  virtual int64_t kept_elements(std::span<const TensorSpec> /*inputs*/) const { return 0; }
  /// Returns the number n of valid indices (0 to n - 1) if the layer's input holds indices, otherwise
  /// nullopt.
  virtual std::optional<int64_t> indices() const { return std::nullopt; }
  /// Returns the kind of layers that may compute something else with this layer's parameters (`shared_with`):
  /// "dense" for an embedding, whose transpose is then a kernel. Empty if there is none.
  virtual std::string_view tied_kind() const { return {}; }
  /// Returns a layer of tied_kind() that has the parameters of this layer, but its own options. `kind` is the
  /// kind as written. Returns an empty object after reporting an error in the options.
  virtual Configured<Layer> tied(const ConfigNode& /*kind*/, const ConfigNode& /*options*/,
                                 Diagnostics&) const {
    return {};
  }
};

/// Returns the registry of all layers (layers/registry.cpp).
template <>
const Registry<Layer>& registry<Layer>();

}  // namespace dtrain
