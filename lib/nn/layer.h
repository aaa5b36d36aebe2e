// A layer: its options, what it makes of its inputs' shapes, its parameters; and, prepared for one batch
// size, its computation.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/tensor_spec.h"
#include "base/view.h"
#include "config/registry.h"
#include "nn/initializer.h"
#include "ops/ops.h"

namespace dtrain {

/// A parameter as its layer declares it; the shape is Keras's array layout.
struct ParameterSpec {
  std::string name;  // "kernel"
  Shape shape;
  Configured<Initializer> initializer;
  /// Not set: trained by gradients. Set: a statistic, state = momentum * state + (1 - momentum) * batch's
  /// value, where backward (or forward) writes the batch's value, weighted by the replica's share of the
  /// global batch, as its "gradient".
  std::optional<float> moving_average;
};

/// What a kernel is prepared for.
struct LayerRequest {
  Ops& ops;
  int64_t batch;                       // of this replica, at least 1
  bool training;                       // backward will be called
  std::span<const TensorSpec> inputs;  // samples' shapes
  const TensorSpec& output;
  std::span<const Layout> input_layouts;  // what the inputs lie in; a kernel may ask for another
  ActivationSpec activation;              // fused behind the layer; linear unless the layer's can_fuse agreed
  std::vector<bool> input_needs_gradient;
  uint32_t stream = 0;    // a number of this node's own, for random draws
  bool trainable = true;  // else no parameter moves, and batch normalisation goes by its moving statistics
};

/// What the plan must know of a prepared kernel.
struct LayerRequirements {
  std::vector<Layout>
      input_layouts;  // as it wants them (the plan reorders where they lie otherwise); empty: all plain
  Layout output_layout = Layout::plain;
  size_t scratch_bytes = 0;  // during a call
  size_t saved_bytes = 0;    // from forward to backward
  bool backward_reads_inputs = false;
  bool backward_reads_output = false;
  /// The output is the first input under another shape (flatten, reshape, dropout at inference): forward and
  /// backward are not called, values and gradients pass through.
  bool is_view = false;
  /// The gradient of every input is the gradient of the output as it stands (add): backward is not called.
  bool passes_gradient = false;
  bool forward_in_place = false;   // the output may overwrite the first input
  bool backward_in_place = false;  // the first input's gradient may overwrite the output's
  /// backward undoes the fused activation itself (batch normalisation); else it is given the gradient before
  /// the activation.
  bool undoes_activation = false;
};

/// The arrays of one call; pointers are filled in by the plan. Images lie in the layouts of
/// LayerRequirements; inputs, outputs and their gradients are of the Ops' compute type (integers apart).
struct LayerArguments {
  std::vector<const void*> inputs;
  void* output = nullptr;
  std::vector<const float*> parameters;  // in the order of Layer::parameters
  std::vector<const void*> weights;      // the same in the compute type, for products
  const void* diff_output = nullptr;
  std::vector<void*> diff_inputs;       // null where no gradient is wanted
  std::vector<float*> diff_parameters;  // to be overwritten; null where the layer is not trainable. Moving
                                        // averages: see below
  void* saved = nullptr;
  void* scratch = nullptr;

  uint64_t seed = 0;               // of the run
  const uint64_t* step = nullptr;  // global, in device memory, so that dropout draws anew
  uint64_t first_sample = 0;       // this replica's first sample's place in the global batch
  float share = 1;                 // this replica's part of the global batch

  const void* input() const { return inputs[0]; }
};

/// One layer's computation for one batch size on one device. Used by one replica's thread; makes no
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

/// Options only; immutable, shared by every replica.
class Layer {
 public:
  virtual ~Layer() = default;

  /// The output's shape (without the batch axis) and dtype; nothing where the inputs do not suit, after
  /// reporting both sides.
  virtual std::optional<TensorSpec> infer(std::span<const TensorSpec> inputs,
                                          const ReportError& report_error) const = 0;
  virtual std::vector<ParameterSpec> parameters(std::span<const TensorSpec> /*inputs*/) const { return {}; }
  virtual std::unique_ptr<PreparedLayer> prepare(const LayerRequest& request) const = 0;

  /// The activation written among the options (`activation: relu`): the graph lays it as a node behind the
  /// layer and fuses it where can_fuse says so. An empty Kind where there is none.
  virtual Configured<Layer> activation() const { return {}; }
  /// Elementwise activations that the layer's kernel applies itself.
  virtual bool can_fuse(const ActivationSpec&) const { return false; }
  /// For the activation layer: which function it is, where it is an elementwise one.
  virtual std::optional<ActivationSpec> elementwise() const { return std::nullopt; }
  virtual bool is_softmax() const { return false; }
  /// Its input holds indices, from 0 to below this.
  virtual std::optional<int64_t> indices() const { return std::nullopt; }

  /// Keras's class and config (less the name) for the checkpoint's model_config.
  virtual std::string keras_class() const = 0;
  virtual Json keras_config() const = 0;
};

/// The table of all layers (layers/registry.cpp).
template <>
const Registry<Layer>& registry<Layer>();

}  // namespace dtrain
