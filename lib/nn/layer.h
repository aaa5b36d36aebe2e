// Layer has the options, the shape inference and the parameters of a layer. PreparedLayer is the computation
// of a layer for one batch size. Every layer has at least one output.
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

/// The training options of one parameter. Parameters that no entry of `train.groups` selects have the default
/// values.
struct ParameterTraining {
  bool trainable = true;  // false: the parameter is constant and has no optimizer state
  float learning_rate_factor = 1;
  std::optional<float> weight_decay;  // weight decay of this parameter; nullopt: the optimizer's weight decay
  bool operator==(const ParameterTraining&) const = default;
};

/// A parameter as its layer declares it. Shapes follow Keras's weight layouts.
struct ParameterSpec {
  std::string name;  // "kernel"
  Shape shape;
  Configured<Initializer> initializer;
  /// The momentum of a moving statistic; nullopt if the parameter is trained by gradients. A moving statistic
  /// is updated as state = momentum * state + (1 - momentum) * batch value. Backward (or forward) writes the
  /// batch value into LayerArguments::diff_parameters, which contains the gradients of the other parameters.
  /// The batch value is multiplied by the replica's share of the global batch.
  std::optional<float> moving_average;
  ParameterTraining training = {};
  PenaltySpec penalty = {};                                // added to the loss if the parameter is trained
  std::shared_ptr<const Constraint> constraint = nullptr;  // applied after each update; null: none
  OrthogonalPenalty orthogonal = {};  // orthogonality penalty, added to the loss if the parameter is trained

  bool has_penalty() const { return penalty || orthogonal; }
};

/// How a layer treats the masks of its inputs. As in Keras, a mask marks the valid positions of a value: 1
/// for a valid position, 0 for padding. The mask is an array of uint8 whose shape consists of the leading
/// extents of the value, such as [steps].
enum class MaskRule : uint8_t {
  refused,  // the layer does not support padding: reports an error if an input has a mask
  passed,   // the layer computes each position separately: the outputs get the mask of the inputs
  read,     // the prepared layer reads the masks (LayerArguments::masks)
};

/// The arguments of Layer::prepare().
struct LayerRequest {
  Ops& ops;
  int64_t batch;                        // rows of this replica, at least 1
  bool training;                        // whether backward will be called
  std::span<const TensorSpec> inputs;   // shapes without the batch axis
  std::span<const TensorSpec> outputs;  // the result of Layer::infer()
  /// Current layouts of the inputs; if the layer requires other layouts, the plan reorders the inputs.
  std::span<const Layout> input_layouts;
  ActivationSpec activation;  // fused with the first output; always linear if can_fuse() is false
  /// Whether forward adds args.addend to the first output before it applies the activation. This requires
  /// can_add(). In the forward pass, this layer then also performs the addition of an add layer. In the
  /// backward pass, the node of the add layer handles the gradient of the addition.
  bool adds = false;
  std::vector<bool> input_needs_gradient;
  /// For each input, whether the layer gets a mask for it; empty if no input has a mask.
  std::vector<bool> masked = {};
  uint32_t stream = 0;  // random stream of this node
  /// If false, the parameters are constant, and batch normalization uses its moving statistics.
  bool trainable = true;
  /// Used for collective calls in forward and backward; null if there is only one replica.
  Collective* replicas = nullptr;

  const TensorSpec& output() const { return outputs[0]; }  // for layers with one output
  bool is_masked(size_t input) const { return input < masked.size() && masked[input]; }
};

/// The properties of a prepared layer that the plan needs.
struct LayerRequirements {
  /// Layouts of the inputs that the layer reads and of the outputs that it writes; empty if all are plain. If
  /// an input has another layout, the plan reorders it before the call.
  std::vector<Layout> input_layouts, output_layouts;
  size_t scratch_bytes = 0;  // temporary memory during a call
  size_t saved_bytes = 0;    // memory kept from forward to backward
  bool backward_reads_inputs = false;
  bool backward_reads_outputs = false;
  /// Whether the layer's only output is a view of its first input, with another shape. Examples are flatten,
  /// reshape, and dropout at inference. Forward and backward of such a layer are not called, because the
  /// values and the gradients do not change.
  bool is_view = false;
  /// Whether the gradient of every input equals the gradient of the only output, as in an add layer. Backward
  /// of such a layer is not called.
  bool passes_gradient = false;
  bool forward_in_place = false;  // whether the first output may overwrite the first input
  /// Whether the gradient of the first input may overwrite the gradient of the first output.
  bool backward_in_place = false;
  /// Whether backward itself differentiates the fused activation, as batch normalization does. If false,
  /// backward receives the gradient of the first output before the activation.
  bool undoes_activation = false;
  /// Index of the parameter that is a bias added to the layer's only output; -1 if there is none. The plan
  /// computes the gradient of this bias, so the layer's backward does not write it. The gradient is the sum
  /// of the output's gradient (before the activation) over all axes but the last. If there is an activation,
  /// the sum is fused with the backward computation of the activation.
  int bias = -1;
  /// Number of doubles that each replica contributes to the all-gather in forward or backward; 0 if the call
  /// makes no all-gather. A call makes at most one all-gather, and its size is the same for every batch size.
  /// Therefore a replica without rows can take part (Plan::join_collectives).
  int64_t forward_gathered = 0, backward_gathered = 0;
  Remarks remarks = {};

  Layout input_layout(size_t input) const {
    return input_layouts.empty() ? Layout::plain : input_layouts[input];
  }
  Layout output_layout(size_t output = 0) const {
    return output_layouts.empty() ? Layout::plain : output_layouts[output];
  }
};

/// The arrays of one call. The plan fills in the pointers. Images have the layouts given by
/// LayerRequirements. Inputs, outputs and their gradients have the Ops' compute type, except for integer
/// arrays.
struct LayerArguments {
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  std::vector<const float*> parameters;  // in the order of Layer::parameters
  std::vector<const void*> weights;      // the parameters in the compute type, for matrix products
  /// Gradients of the outputs, indexed by output. A pointer is null if no loss depends on that output,
  /// because its gradient is then zero. backward is only called if at least one output has a gradient.
  std::vector<const void*> diff_outputs;
  std::vector<void*> diff_inputs;  // null if the gradient is not needed
  /// Gradients of the parameters, which backward overwrites; null if the layer is not trainable.
  /// PreparedLayer describes the "gradients" of moving averages, and LayerRequirements::bias describes the
  /// gradients of biases.
  std::vector<float*> diff_parameters;
  /// The masks of the inputs, indexed by input. A mask is null if the input has no mask. The list is empty if
  /// no input has a mask.
  std::vector<const uint8_t*> masks;
  const void* addend = nullptr;  // set if LayerRequest::adds
  void* saved = nullptr;
  void* scratch = nullptr;

  uint64_t seed = 0;               // seed of the run
  const uint64_t* step = nullptr;  // global step, in device memory: dropout draws a new mask in each step
  uint64_t first_sample = 0;       // index of this replica's first sample in the global batch
  float share = 1;                 // this replica's fraction of the global batch

  // Shortcuts for layers with one input or one output.
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

/// The computation of one layer for one batch size on one device. It is used by the thread of one replica.
/// After the constructor, it allocates no memory. For moving averages, backward writes the statistics of the
/// current batch into LayerArguments::diff_parameters (see ParameterSpec::moving_average). In training, the
/// pointers in diff_parameters are never null.
class PreparedLayer {
 public:
  virtual ~PreparedLayer() = default;
  const LayerRequirements& requirements() const { return requirements_; }
  virtual void forward(const LayerArguments& args) = 0;
  virtual void backward(const LayerArguments&) {}

 protected:
  LayerRequirements requirements_;
};

/// Reports an error at the layer's source location. The layer's kind and name are put before the message
/// ("max_pooling2d 'pool1': ...").
using ReportError = std::function<void(const std::string& message)>;

/// The options of a layer, and all functions that depend only on these options. Objects are immutable and
/// shared by all replicas.
class Layer {
 public:
  virtual ~Layer() = default;

  /// Returns the shapes (without the batch axis) and dtypes of the outputs. There is at least one output. If
  /// the inputs are invalid, reports the expected inputs and the inputs found, and returns an empty vector.
  virtual std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs,
                                        const ReportError& report_error) const = 0;
  /// Returns the parameters, in the order of LayerArguments::parameters. infer() must have accepted the
  /// inputs.
  virtual std::vector<ParameterSpec> parameters(std::span<const TensorSpec> /*inputs*/) const { return {}; }
  /// Returns the computation for one batch size on the device of `request`. Throws Unsupported if the
  /// device's libraries do not support the computation.
  virtual std::unique_ptr<PreparedLayer> prepare(const LayerRequest& request) const = 0;

  /// If the size of the output's last axis is written as `auto`, returns the configuration node of this
  /// option. Otherwise returns null. While the size is `auto`, infer() cannot be called, because the data
  /// determines the size.
  virtual ConfigNode open_units() const { return {}; }
  /// Returns the activation option of the layer (`activation: relu`), or an empty object if the layer has
  /// none. In the graph, the activation is a separate node after the layer's first output. The plan fuses the
  /// two if can_fuse() is true.
  virtual Configured<Layer> activation() const { return {}; }
  /// Returns whether the prepared layer can apply this elementwise activation to its first output.
  virtual bool can_fuse(const ActivationSpec&) const { return false; }
  /// Returns whether the prepared layer can add another value to its first output before it applies this
  /// activation.
  virtual bool can_add(const Ops&, const ActivationSpec&) const { return false; }
  /// Returns whether the layer's output is the sum of its inputs.
  virtual bool is_sum() const { return false; }
  /// Returns the function of an elementwise activation layer; nullopt for all other layers.
  virtual std::optional<ActivationSpec> elementwise() const { return std::nullopt; }
  virtual bool is_softmax() const { return false; }
  /// Returns whether training needs collective calls in forward and backward, because the layer computes
  /// statistics over the rows of all replicas.
  virtual bool is_synchronized() const { return false; }
  /// Returns whether Keras applies the layer's `activity_regularizer` to the outputs only. If false, the
  /// option is reported as an error.
  virtual bool can_penalize_output() const { return true; }
  virtual MaskRule mask_rule() const { return MaskRule::refused; }
  /// For MaskRule::read, returns whether an output has the mask of the first input.
  virtual bool masks_output(size_t /*output*/) const { return false; }
  /// For layers that create a mask, returns the value that marks padding. A position is masked if all its
  /// elements in the input have this value. For other layers, returns nullopt.
  virtual std::optional<float> padding() const { return std::nullopt; }
  /// Returns whether the last output is the mask of the first one. Users do not see the mask as an output.
  bool creates_mask() const { return padding().has_value(); }
  /// Returns whether, in inference, each position of the outputs depends only on the same position of the
  /// inputs.
  virtual bool is_by_position() const { return mask_rule() == MaskRule::passed; }
  /// Returns a layer that computes one position of the output per call, for models that generate text
  /// position by position. The inputs of the step layer are one position of each input of this layer,
  /// followed by the indices of the positions (int32 scalars). The step layer stores the data of earlier
  /// positions that it needs. Returns null in two cases: outputs depend on later positions, or this layer
  /// itself can be used for single positions (is_by_position()). `inputs` are the inputs of this layer for
  /// whole sequences.
  virtual std::shared_ptr<const Layer> step_layer(std::span<const TensorSpec> /*inputs*/) const {
    return nullptr;
  }
  /// Returns the number of elements that the step layer stores for each sample.
  virtual int64_t kept_elements(std::span<const TensorSpec> /*inputs*/) const { return 0; }
  /// If the layer's input holds indices, returns the number n of valid indices (0 to n - 1). Otherwise
  /// returns nullopt.
  virtual std::optional<int64_t> indices() const { return std::nullopt; }
  /// Returns the kind of the layers that can use this layer's parameters for a different computation
  /// (`shared_with`). For an embedding, this is "dense", because a dense layer can use the transposed table
  /// as its kernel. Returns "" if there is no such kind.
  virtual std::string_view tied_kind() const { return {}; }
  /// Returns a layer of the kind tied_kind() that uses the parameters of this layer but has its own options.
  /// `kind` is the kind as the user wrote it. If an option is wrong, reports an error and returns an empty
  /// object.
  virtual Configured<Layer> tied(const ConfigNode& /*kind*/, const ConfigNode& /*options*/,
                                 Diagnostics&) const {
    return {};
  }
};

/// Returns the registry of all layers (layers/registry.cpp).
template <>
const Registry<Layer>& registry<Layer>();

}  // namespace dtrain
