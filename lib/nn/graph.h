// A model as a graph of layers: parsed, named, with every shape inferred. Knows nothing of devices, batches
// or memory.
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

namespace dtrain {

/// One output of one node.
struct ValueRef {
  int node = -1;  // -1: none
  int output = 0;
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy takes the 0 inside a defaulted <=> for a pointer.
  auto operator<=>(const ValueRef&) const = default;
};

/// A layer in its place.
struct GraphNode {
  std::string name;                 // canonical: "dense_1", in a block's n-th use "basic_2/conv2d_1"
  std::string kind;                 // "conv2d"; "input" for a model input
  std::string block;                // the use of a block, in the model itself, that the layer is of; "": none
  Configured<Layer> layer;          // empty for an input
  std::vector<ValueRef> inputs;     // of nodes with smaller numbers than this node's
  std::vector<TensorSpec> outputs;  // at least one; a later one is called "lstm:1"
  std::vector<ParameterSpec> parameters;
  bool trainable = true;
  bool is_frozen = false;  // by a pattern of Graph::freeze, which alone makes it not trainable
  /// An earlier node of the same layer, whose parameters are this node's too; -1: its parameters are its own.
  int shared_with = -1;
  /// Where its user wants it, by `device:` of its own or of a block's use around it.
  std::optional<WrittenDevice> device;
  /// The number of the segment whose activations backward computes again, from 0 in the order of the nodes,
  /// which follow each other; -1: they are kept.
  int recompute = -1;
  /// The node was made for the `activation:` option of the layer before it, whose first output it reads; to
  /// the user it is no layer of its own.
  bool is_activation_of_previous = false;
  Mark mark;

  /// Whether training moves any of its parameters.
  bool has_moving_parameters() const;
  /// Whether gradients move this parameter of its.
  bool trains(const ParameterSpec& parameter) const {
    return trainable && parameter.training.trainable && !parameter.moving_average;
  }
};

/// Nodes in an order in which every node comes after its inputs; the model's inputs first, in the model's
/// order.
struct Graph {
  std::vector<GraphNode> nodes;
  std::vector<int> inputs;        // numbers of nodes, each with one output
  std::vector<ValueRef> outputs;  // at least one
  std::optional<PretrainedWeights> pretrained;
  std::optional<Patterns> freeze;
  ConfigNode resolved;  // the model part of `config.yaml`: blocks laid out, defaults written

  std::vector<TensorSpec> input_specs() const;
  const TensorSpec& spec(ValueRef value) const {
    return nodes[static_cast<size_t>(value.node)].outputs[static_cast<size_t>(value.output)];
  }
  /// The name by which people know a node's outputs: the layer's own, where the node is its activation.
  const std::string& layer_name(int node) const;
  /// The node whose parameters a node has: its own number, unless they are shared with an earlier one.
  int owner(int node) const {
    const int shared = nodes[static_cast<size_t>(node)].shared_with;
    return shared < 0 ? node : shared;
  }
  /// Whether replicas that train it run collectives within forward and backward (Layer::is_synchronized).
  bool is_synchronized() const;
  /// How many elements the trained parameters have, or (not `trainable`) the others; shared ones count once.
  int64_t count_parameters(bool trainable) const;
};

/// The model as `resolved` has it: a flat list of layers that parse_model reads back to an equal graph.
ConfigNode write_model(const Graph& graph);

/// An input of a model, of which the shape may be left to the data.
struct ModelInput {
  std::string name;
  DType dtype = DType::float32;
  std::optional<Shape> shape;  // nothing where it is not known
  ConfigNode open_shape;       // the `auto` in the place of the shape; null where there is none
};

/// What is known of an output of a model, however much of it is wrong.
struct ModelOutput {
  ValueRef value;                  // none where it is not known
  std::string name;                // "" where it is not known
  std::optional<TensorSpec> spec;  // nothing where it is not known
  ConfigNode open_units;           // the `auto` in the place of its layer's units; null where there is none
};

/// What is known of a model's inputs and outputs.
struct ModelEnds {
  std::vector<ModelInput> inputs;
  std::vector<ModelOutput> outputs;

  /// Whether the data have to say shapes before there is a graph.
  bool is_open() const;
};

/// Builds the graph from the `model:` part of a configuration: inputs, layers, blocks with parameters and
/// `repeat`, outputs (the last layer's first where not given). Every mistake is reported; nothing is returned
/// then, nor where shapes are left to the data. `ends`, unless null, becomes what is known all the same.
std::optional<Graph> parse_model(const ConfigNode& node, Diagnostics& diagnostics, ModelEnds* ends = nullptr);
Json model_json_schema();

}  // namespace dtrain
