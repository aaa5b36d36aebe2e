// A layer: its options, what it makes of its inputs' shapes, its parameters; and, prepared for one batch
// size, its computation. It has at least one output.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/tensor_spec.h"
#include "base/view.h"
#include "collective/collective.h"
#include "config/registry.h"
#include "nn/initializer.h"
#include "ops/ops.h"

namespace dtrain {

/// How a parameter is trained where `train.groups` has it trained otherwise than the rest.
struct ParameterTraining {
  bool trainable = true;  // else it never moves, and has no slots
  float learning_rate_factor = 1;
  std::optional<float> weight_decay;  // in place of the optimizer's
  bool operator==(const ParameterTraining&) const = default;
};

/// A parameter as its layer declares it; the shape is Keras's array layout.
struct ParameterSpec {
  std::string name;  // "kernel"
  Shape shape;
  Configured<Initializer> initializer;
  /// Not set: trained by gradients. Set: a statistic, state = momentum * state + (1 - momentum) * batch's
  /// value, where backward (or forward) writes the batch's value, weighted by the replica's share of the
  /// global batch, as its "gradient".
  std::optional<float> moving_average;
  ParameterTraining training = {};
};

/// What a layer is prepared for.
struct LayerRequest {
  Ops& ops;
  int64_t batch;                          // of this replica, at least 1
  bool training;                          // backward will be called
  std::span<const TensorSpec> inputs;     // samples' shapes
  std::span<const TensorSpec> outputs;    // as the layer's infer gave them
  std::span<const Layout> input_layouts;  // what the inputs lie in; the layer may ask for other layouts
  ActivationSpec activation;              // fused behind the first output; linear unless can_fuse agreed
  bool adds = false;  // forward adds args.addend to the first output, ahead of the activation, whose gradient
                      // is another node's affair; only where can_add agreed
  std::vector<bool> input_needs_gradient;
  uint32_t stream = 0;    // a number of this node's own, for random draws
  bool trainable = true;  // else no parameter moves, and batch normalisation goes by its moving statistics
  Collective* replicas = nullptr;  // to meet within a call; null where there is one replica

  const TensorSpec& output() const { return outputs[0]; }  // of layers with a single one
};

/// What the plan must know of a prepared layer.
struct LayerRequirements {
  /// The layouts that the layer reads (the plan reorders inputs that lie otherwise) and writes; empty: all
  /// plain.
  std::vector<Layout> input_layouts, output_layouts;
  size_t scratch_bytes = 0;  // during a call
  size_t saved_bytes = 0;    // from forward to backward
  bool backward_reads_inputs = false;
  bool backward_reads_outputs = false;
  /// The only output is the first input under another shape (flatten, reshape, dropout at inference): forward
  /// and backward are not called, values and gradients pass through.
  bool is_view = false;
  /// The gradient of every input is the gradient of the only output as it stands (add): backward is not
  /// called.
  bool passes_gradient = false;
  bool forward_in_place = false;   // the first output may overwrite the first input
  bool backward_in_place = false;  // the first input's gradient may overwrite the first output's
  /// backward undoes the fused activation itself (batch normalisation); else it is given the first output's
  /// gradient before the activation.
  bool undoes_activation = false;
  /// The parameter, by number, that is a bias of the layer's only output: its gradient is the sum over all
  /// but the last axis of that output's gradient before the activation. The plan sums it, while it undoes the
  /// activation where it has to, and backward does not write it. -1: there is none.
  int bias = -1;
  /// How many doubles each replica gives to the all-gather within forward (backward): one in the call, of the
  /// same size for any batch, so that a replica without rows can take part (Plan::meet). 0: there is none.
  int64_t forward_meeting = 0, backward_meeting = 0;
  Remarks remarks = {};

  Layout input_layout(size_t input) const {
    return input_layouts.empty() ? Layout::plain : input_layouts[input];
  }
  Layout output_layout(size_t output = 0) const {
    return output_layouts.empty() ? Layout::plain : output_layouts[output];
  }
};

/// The arrays of one call; pointers are filled in by the plan. Images lie in the layouts of
/// LayerRequirements; inputs, outputs and their gradients are of the Ops' compute type (integers apart).
struct LayerArguments {
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  std::vector<const float*> parameters;  // in the order of Layer::parameters
  std::vector<const void*> weights;      // the same in the compute type, for products
  /// Null for an output that no loss depends on, whose gradient is zero; backward is only called where at
  /// least one output has a gradient.
  std::vector<const void*> diff_outputs;
  std::vector<void*> diff_inputs;       // null where no gradient is wanted
  std::vector<float*> diff_parameters;  // to be overwritten; null where the layer is not trainable. Moving
                                        // averages: see PreparedLayer; biases: LayerRequirements
  const void* addend = nullptr;         // where LayerRequest::adds
  void* saved = nullptr;
  void* scratch = nullptr;

  uint64_t seed = 0;               // of the run
  const uint64_t* step = nullptr;  // global, in device memory, so that dropout draws anew
  uint64_t first_sample = 0;       // this replica's first sample's place in the global batch
  float share = 1;                 // this replica's part of the global batch

  // Of layers with a single input, or a single output.
  const void* input() const { return inputs[0]; }
  void* output() const { return outputs[0]; }
  const void* diff_output() const { return diff_outputs[0]; }
};

/// The shape of a batch of images, [n, height, width, channels], as Ops::reorder takes it. Sequences,
/// [n, length, channels], are images of height 1, and volumes, [n, depth, height, width, channels], of height
/// depth * height.
inline Shape image_batch(const Shape& batch) {
  if (batch.rank() == 5) return {batch[0], batch[1] * batch[2], batch[3], batch[4]};
  return batch.rank() == 3 ? Shape{batch[0], 1, batch[1], batch[2]} : batch;
}

/// One layer's computation for one batch size on one device. It is used by one replica's thread, and makes no
/// allocation once prepared. The "gradients" of moving averages are written by backward (they are never null
/// in training).
class PreparedLayer {
 public:
  virtual ~PreparedLayer() = default;
  const LayerRequirements& requirements() const { return requirements_; }
  virtual void forward(const LayerArguments& args) = 0;
  virtual void backward(const LayerArguments&) {}

 protected:
  LayerRequirements requirements_;
};

/// Where a layer's errors go: the message at the layer's place, prefixed with its kind and name
/// ("max_pooling2d 'pool1': ...").
using ReportError = std::function<void(const std::string& message)>;

/// A layer's options and what follows from them alone; immutable, shared by every replica.
class Layer {
 public:
  virtual ~Layer() = default;

  /// The outputs' shapes (without the batch axis) and dtypes, at least one output; empty where the inputs do
  /// not suit, after an error was reported that says what was expected and what was found.
  virtual std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs,
                                        const ReportError& report_error) const = 0;
  /// The parameters, in the order of LayerArguments, for inputs that infer() took.
  virtual std::vector<ParameterSpec> parameters(std::span<const TensorSpec> /*inputs*/) const { return {}; }
  /// The computation for one batch size on the device of `request`. Throws Unsupported where its libraries
  /// cannot do it.
  virtual std::unique_ptr<PreparedLayer> prepare(const LayerRequest& request) const = 0;

  /// The `auto` that is written where the size of the output's last axis belongs: infer() cannot be called
  /// before the data have said it. Null where the size is known.
  virtual ConfigNode open_units() const { return {}; }
  /// The activation written among the options (`activation: relu`): the graph has it as a node after the
  /// layer's first output, and the plan fuses it where can_fuse says so. Empty where there is none.
  virtual Configured<Layer> activation() const { return {}; }
  /// Whether the prepared layer applies this elementwise activation itself, to its first output.
  virtual bool can_fuse(const ActivationSpec&) const { return false; }
  /// Whether the prepared layer adds another value to its first output, ahead of this activation.
  virtual bool can_add(const Ops&, const ActivationSpec&) const { return false; }
  /// Whether the layer's output is the sum of its inputs.
  virtual bool is_sum() const { return false; }
  /// The function of an activation layer that is an elementwise one; nothing for all other layers.
  virtual std::optional<ActivationSpec> elementwise() const { return std::nullopt; }
  virtual bool is_softmax() const { return false; }
  /// Whether training needs collectives within forward and backward, as statistics are over the rows of all
  /// replicas.
  virtual bool is_synchronized() const { return false; }
  /// Set where the layer's input holds indices: how many there are, counted from 0.
  virtual std::optional<int64_t> indices() const { return std::nullopt; }
};

/// The table of all layers (layers/registry.cpp).
template <>
const Registry<Layer>& registry<Layer>();

}  // namespace dtrain
