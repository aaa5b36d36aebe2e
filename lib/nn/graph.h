// A model as a graph of layers: parsed, named, with every shape inferred. It does not depend on devices,
// batches or memory.
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
  std::string name;                 // canonical: "dense_1"; in the n-th use of a block "basic_2/conv2d_1"
  std::string kind;                 // "conv2d"; "input" for a model input
  std::string block;                // outermost use of a block that contains the layer; "": none
  Configured<Layer> layer;          // empty for an input
  std::vector<ValueRef> inputs;     // outputs of nodes with smaller indices
  std::vector<TensorSpec> outputs;  // at least one; further ones are named "lstm:1"
  /// Masks of the inputs, by input (none: not masked); empty if the layer reads no masks.
  std::vector<ValueRef> masks;
  /// Masks of the outputs, by output; empty if no output has one.
  std::vector<ValueRef> output_masks;
  std::vector<ParameterSpec> parameters;
  bool trainable = true;
  bool is_frozen = false;  // whether it is not trainable only because it matches Graph::freeze
  /// Whether the layer treats padding as data. It then reads no masks, and its outputs do not get the masks
  /// of its inputs.
  bool ignores_mask = false;
  /// Index of the earlier node that owns this node's parameters; -1: the node owns them. Both nodes are uses
  /// of one layer unless Graph::is_tied().
  int shared_with = -1;
  /// The penalty on the outputs that layers can read, which is part of the loss. It is an option of the
  /// node's layer or, for the node of an `activation:` option, of the layer with that option.
  OptionalRegularizer activity_regularizer = {};
  /// The `device:` option of the layer or of the innermost block around it that has one.
  std::optional<WrittenDevice> device;
  /// Index of the segment whose activations backward recomputes, counted from 0 in node order; -1:
  /// activations are kept. The nodes of a segment are consecutive.
  int recompute = -1;
  /// Whether the node was created for the `activation:` option of the previous node, whose first output it
  /// reads. Users do not see it as a separate layer.
  bool is_activation_of_previous = false;
  Mark mark;

  /// Returns the mask of an output; none if it has no mask.
  ValueRef mask_of_output(int output) const {
    return output_masks.empty() ? ValueRef() : output_masks[static_cast<size_t>(output)];
  }
  /// Returns the number of outputs that layers can read: all but a mask.
  size_t readable_outputs() const { return outputs.size() - (layer && layer->creates_mask() ? 1 : 0); }
  /// Returns the penalty on each output; 0 if there is none.
  PenaltySpec activity_penalty() const {
    return activity_regularizer && *activity_regularizer ? (*activity_regularizer)->penalty : PenaltySpec{};
  }
  /// Returns whether the layer has parameters of the same shapes for these inputs.
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
  /// Returns the value's mask; none if it has no mask.
  ValueRef mask_of(ValueRef value) const {
    return nodes[static_cast<size_t>(value.node)].mask_of_output(value.output);
  }
  /// Returns the name of a node's layer. For the node of an `activation:` option, that is the layer with the
  /// option.
  const std::string& layer_name(int node) const;
  /// Returns the name by which layers refer to the value: the name of its layer, with the number of the
  /// output unless it is the first one ("lstm:1").
  std::string value_name(ValueRef value) const;
  /// Returns the index of the node that owns the parameters of `node`: `node` itself unless they are shared.
  int owner(int node) const {
    const int shared = nodes[static_cast<size_t>(node)].shared_with;
    return shared < 0 ? node : shared;
  }
  /// Returns whether the node uses the parameters of a layer of another kind: a `dense` layer with the
  /// weights of an `embedding` (Layer::tied).
  bool is_tied(int node) const {
    return nodes[static_cast<size_t>(node)].kind != nodes[static_cast<size_t>(owner(node))].kind;
  }
  /// Returns the layer that reads the model input `input` (a node) as indices. If several layers do, returns
  /// the layer with the smallest limit (Layer::indices). Returns null if there is none.
  const GraphNode* reader_of_indices(int input) const;
  /// Returns whether training on several replicas needs collectives within forward and backward
  /// (Layer::is_synchronized).
  bool is_synchronized() const;
  /// Returns whether penalties on trained parameters or on outputs are part of the loss.
  bool has_penalties() const;
  /// Returns the number of elements of the trained parameters or, if `trainable` is false, of all others.
  /// Shared parameters count once.
  int64_t count_parameters(bool trainable) const;
};

/// Returns the `activity_regularizer:` option of the layer whose first node is number `layer`.
const OptionalRegularizer& activity_regularizer_of(const std::vector<GraphNode>& nodes, int layer);

/// Returns the model as a flat list of layers (Graph::resolved). parse_model() reads it back to an equal
/// graph.
ConfigNode write_model(const Graph& graph);

/// An input of a model. Its shape may be determined by the data.
struct ModelInput {
  std::string name;
  DType dtype = DType::float32;
  std::optional<Shape> shape;  // nullopt if unknown
  ConfigNode open_shape;       // the `auto` written in place of the shape; null if there is none
};

/// The known facts about an output of a model; also filled in for models with errors.
struct ModelOutput {
  ValueRef value;                  // none if unknown
  std::string name;                // "" if unknown
  std::optional<TensorSpec> spec;  // nullopt if unknown
  ConfigNode open_units;           // the `auto` written in place of its layer's units; null if there is none
};

/// The known facts about a model's inputs and outputs.
struct ModelEnds {
  std::vector<ModelInput> inputs;
  std::vector<ModelOutput> outputs;

  /// Returns whether the data must determine shapes before the graph can be built.
  bool is_open() const;
};

/// Builds the graph from the `model:` section of a configuration: inputs, layers, blocks with parameters and
/// `repeat`, outputs (default: the last layer's first output). Reports every error. Returns nullopt if there
/// were errors, or if the data must determine shapes. In each case `ends`, unless null, receives the known
/// facts about inputs and outputs.
std::optional<Graph> parse_model(const ConfigNode& node, Diagnostics& diagnostics, ModelEnds* ends = nullptr);
Json model_json_schema();

}  // namespace dtrain
