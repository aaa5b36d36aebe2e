// A model as a graph of layers. The configuration is parsed, each layer has a name, and the shapes of all
// values are inferred. A graph does not depend on devices, batch sizes or memory.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/tensor_spec.h"
#include "config/patterns.h"
#include "config/registry.h"
#include "device/written_device.h"
#include "nn/layer.h"
#include "nn/pretrained.h"
#include "nn/regularizer.h"

namespace dtrain {

/// One output of one node.
struct ValueRef {
  int node = -1;  // -1: none
  int output = 0;
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy takes the 0 inside a defaulted <=> for a pointer.
  auto operator<=>(const ValueRef&) const = default;
};

/// One use of a layer in a graph.
struct GraphNode {
  std::string name;  // canonical: "dense_1"; for a layer in a block: "basic_2/conv2d_1"
  std::string kind;  // "conv2d"; "input" for a model input
  /// Name of the outermost use of a block that contains the layer; "" if the layer is in no block.
  std::string block;
  Configured<Layer> layer;          // empty for an input
  std::vector<ValueRef> inputs;     // outputs of nodes with smaller indices
  std::vector<TensorSpec> outputs;  // at least one; the second output of a layer is named "lstm:1"
  /// The masks of the inputs, indexed by input; an input without a mask has ValueRef(). Empty if the layer
  /// reads no masks.
  std::vector<ValueRef> masks;
  /// The masks of the outputs, indexed by output. Empty if no output has a mask.
  std::vector<ValueRef> output_masks;
  std::vector<ParameterSpec> parameters;
  bool trainable = true;
  /// True if the layer is not trainable only because its name matches Graph::freeze.
  bool is_frozen = false;
  /// Whether the layer treats padding as data. If so, the layer reads no masks, and its outputs do not get
  /// the masks of its inputs.
  bool ignores_mask = false;
  /// Index of the earlier node that owns this node's parameters; -1 if this node owns its parameters. Usually
  /// both nodes are uses of the same layer. If Graph::is_tied(), they are layers of different kinds.
  int shared_with = -1;
  /// The penalty on the layer's outputs (except a mask), which is part of the loss. If an `activation:`
  /// option has its own node, that node has the penalty that the user gave to the layer with the option.
  OptionalRegularizer activity_regularizer = {};
  /// The `device:` option of the layer or, if the layer has no such option, of the innermost block around the
  /// layer that has one.
  std::optional<WrittenDevice> device;
  /// Index of the recomputed segment of the node. Segments are counted from 0 in node order, and the nodes of
  /// a segment are consecutive. Backward recomputes the activations of a segment. -1: activations are kept in
  /// memory.
  int recompute = -1;
  /// Whether the node was created for the `activation:` option of the previous node. The node reads the first
  /// output of the previous node. Users do not see the node as a separate layer.
  bool is_activation_of_previous = false;
  Mark mark;

  /// Returns the mask of an output, or ValueRef() if the output has no mask.
  ValueRef mask_of_output(int output) const {
    return output_masks.empty() ? ValueRef() : output_masks[static_cast<size_t>(output)];
  }
  /// Returns the number of outputs that other layers can read. If the layer creates a mask, the last output
  /// is this mask, and it does not count.
  size_t readable_outputs() const { return outputs.size() - (layer && layer->creates_mask() ? 1 : 0); }
  /// Returns the penalty on each output. The penalty is 0 if the layer has no activity_regularizer.
  PenaltySpec activity_penalty() const {
    return activity_regularizer && *activity_regularizer ? (*activity_regularizer)->penalty : PenaltySpec{};
  }
  /// Returns whether the parameters of the layer would have the same shapes as now if its inputs were
  /// `of_inputs`.
  bool keeps_parameters(std::span<const TensorSpec> of_inputs) const;
  /// Returns whether training changes any of the node's parameters.
  bool has_moving_parameters() const;
  /// Returns whether gradients update this parameter of the node.
  bool trains(const ParameterSpec& parameter) const {
    return trainable && parameter.training.trainable && !parameter.moving_average;
  }
};

/// The nodes of a model in topological order: the model's inputs first, in their configured order, then every
/// node after its inputs.
struct Graph {
  std::vector<GraphNode> nodes;
  std::vector<int> inputs;        // node indices; each node has one output
  std::vector<ValueRef> outputs;  // at least one
  std::optional<PretrainedWeights> pretrained;
  std::optional<Patterns> freeze;
  ConfigNode resolved;  // the model section of `config.yaml`, with blocks expanded and defaults filled in

  std::vector<TensorSpec> input_specs() const;
  const TensorSpec& spec(ValueRef value) const {
    return nodes[static_cast<size_t>(value.node)].outputs[static_cast<size_t>(value.output)];
  }
  /// Returns the mask of the value, or ValueRef() if the value has no mask.
  ValueRef mask_of(ValueRef value) const {
    return nodes[static_cast<size_t>(value.node)].mask_of_output(value.output);
  }
  /// Returns the name of a node's layer. If the node was created for an `activation:` option, returns the
  /// name of the layer that has this option.
  const std::string& layer_name(int node) const;
  /// Returns the name by which layers refer to the value. This is the name of the layer that produces the
  /// value. For outputs after the first one, the number of the output is appended ("lstm:1").
  std::string value_name(ValueRef value) const;
  /// Returns the index of the node that owns the parameters of `node`. This is `node` itself unless its
  /// parameters are shared.
  int owner(int node) const {
    const int shared = nodes[static_cast<size_t>(node)].shared_with;
    return shared < 0 ? node : shared;
  }
  /// Returns whether the node uses the parameters of a layer of a different kind. An example is a `dense`
  /// layer with the weights of an `embedding` (Layer::tied).
  bool is_tied(int node) const {
    return nodes[static_cast<size_t>(node)].kind != nodes[static_cast<size_t>(owner(node))].kind;
  }
  /// Returns the layer that reads a model input as indices, such as an embedding. `input` is the node of the
  /// model input. If several layers read it as indices, returns the layer with the smallest number of valid
  /// indices (Layer::indices). Returns null if no layer does.
  const GraphNode* reader_of_indices(int input) const;
  /// Returns whether training on several replicas needs collectives within forward and backward
  /// (Layer::is_synchronized).
  bool is_synchronized() const;
  /// Returns whether the loss includes penalties on trained parameters or on outputs of layers.
  bool has_penalties() const;
  /// Returns the number of elements of the trained parameters or, if `trainable` is false, of the parameters
  /// that are not trained. Shared parameters count once.
  int64_t count_parameters(bool trainable) const;
};

/// Returns the `activity_regularizer:` option of a layer. `layer` is the index of the layer's node. (If the
/// layer has an `activation:` option, the activation is the next node.)
const OptionalRegularizer& activity_regularizer_of(const std::vector<GraphNode>& nodes, int layer);

/// Returns the model as a flat list of layers (Graph::resolved). If parse_model() reads this list, the result
/// is an equal graph.
ConfigNode write_model(const Graph& graph);

/// An input of a model. Its shape may be determined by the data.
struct ModelInput {
  std::string name;
  DType dtype = DType::float32;
  std::optional<Shape> shape;  // nullopt if unknown
  ConfigNode open_shape;       // configuration node of the shape if it is `auto`; otherwise null
};

/// The name, the shape and the dtype of an output of a model, as far as they are known. parse_model() also
/// fills in this struct if the model has errors.
struct ModelOutput {
  ValueRef value;                  // none if unknown
  std::string name;                // "" if unknown
  std::optional<TensorSpec> spec;  // nullopt if unknown
  ConfigNode open_units;  // configuration node of the layer's `units` if it is `auto`; otherwise null
};

/// The inputs and outputs of a model, as far as they are known.
struct ModelEnds {
  std::vector<ModelInput> inputs;
  std::vector<ModelOutput> outputs;

  /// Returns whether the data must determine shapes before the graph can be built.
  bool is_open() const;
};

/// Builds the graph from the `model:` section of a configuration. The section has inputs, layers, blocks and
/// outputs (default: the first output of the last layer). Blocks are expanded, with their parameters and
/// `repeat`. Reports every error. Returns nullopt if there were errors, or if the graph cannot be built
/// because shapes depend on the data. If `ends` is not null, it always receives the inputs and outputs, as
/// far as they are known.
std::optional<Graph> parse_model(const ConfigNode& node, Diagnostics& diagnostics, ModelEnds* ends = nullptr);
Json model_json_schema();

}  // namespace dtrain
