#include "generate/step_model.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

namespace dtrain {

namespace {

constexpr int kToken = 0, kPosition = 1;  // nodes of the two inputs of the step model

/// Returns the index that a node of the original graph has in the step model's graph, in which the node
/// kPosition is inserted.
int moved(int node) {
  return node >= kPosition ? node + 1 : node;
}

GraphNode input_of_positions() {
  GraphNode node;
  node.name = "position_in_text";
  node.kind = "input";
  node.outputs = {{node.name, Shape{}, DType::int32}};
  return node;
}

/// Returns whether `step` is equal to `sequence` except that its first axis has one position instead of
/// `positions`.
bool is_one_position(const TensorSpec& step, const TensorSpec& sequence, int64_t positions) {
  if (sequence.shape.rank() == 0 || sequence.shape[0] != positions) return false;
  Shape expected = sequence.shape;
  expected[0] = 1;
  return step.shape == expected && step.dtype == sequence.dtype;
}

/// Converts the graph of a language model to the graph of its step model (see step_config()), node by node.
class StepGraph {
 public:
  explicit StepGraph(const Graph& whole)
      : whole_(whole), positions_(whole.nodes[kToken].outputs[0].shape[0]) {
    graph_ = whole;
    graph_.nodes.clear();
    graph_.inputs = {kToken, kPosition};
    for (ValueRef& output : graph_.outputs) output.node = moved(output.node);
  }

  /// Converts all nodes. If a layer cannot compute one position at a time, returns false and sets `why_not`.
  bool build(std::string& why_not) {
    GraphNode token = whole_.nodes[kToken];
    token.outputs[0].shape = Shape{1};
    graph_.nodes = {std::move(token), input_of_positions()};
    for (size_t i = 1; i < whole_.nodes.size(); ++i) {
      if (!add(whole_.nodes[i])) {
        why_not = fmt::format("the layer '{}' cannot compute one position at a time",
                              whole_.layer_name(static_cast<int>(i)));
        return false;
      }
    }
    return true;
  }

  Graph take() { return std::move(graph_); }

 private:
  bool add(const GraphNode& sequence) {
    if (!sequence.masks.empty() || !sequence.output_masks.empty()) return false;
    GraphNode node = sequence;
    node.shared_with = moved(node.shared_with);
    std::vector<TensorSpec> inputs, sequences;
    for (ValueRef& input : node.inputs) {
      sequences.push_back(whole_.spec(input));
      input.node = moved(input.node);
      inputs.push_back(graph_.spec(input));
    }
    if (const auto step = node.layer->step_layer(sequences)) {
      node.layer.value = step;
      node.inputs.push_back({kPosition});
      inputs.push_back(graph_.nodes[kPosition].outputs[0]);
    } else if (!node.layer->is_by_position() || !node.keeps_parameters(inputs)) {
      return false;
    }
    std::vector<TensorSpec> outputs = node.layer->infer(inputs, [](const std::string&) {});
    if (outputs.size() != node.outputs.size()) return false;
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!is_one_position(outputs[i], node.outputs[i], positions_)) return false;
      node.outputs[i].shape = outputs[i].shape;
    }
    graph_.nodes.push_back(std::move(node));
    return true;
  }

  const Graph& whole_;
  int64_t positions_;
  Graph graph_;
};

}  // namespace

std::optional<RunConfig> step_config(const RunConfig& config, std::string& why_not) {
  StepGraph graph(config.graph);
  if (!graph.build(why_not)) return std::nullopt;
  RunConfig step = config;
  step.graph = graph.take();
  for (Head& head : step.heads) head.output.node = moved(head.output.node);
  return step;
}

int64_t kept_bytes(const RunConfig& config) {
  int64_t elements = 0;
  for (const GraphNode& node : config.graph.nodes) {
    std::vector<TensorSpec> inputs;
    for (const ValueRef input : node.inputs) inputs.push_back(config.graph.spec(input));
    if (node.layer) elements += node.layer->kept_elements(inputs);
  }
  return elements * static_cast<int64_t>(bytes_of(gpu_math(config.train).type));
}

}  // namespace dtrain
