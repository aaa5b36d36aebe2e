// Graphs of layers that only declare their requirements, and functions that run passes on them. No layer is
// run, so the programs are the same on every machine.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "config/load/load.h"
#include "program/passes/passes.h"
#include "program/print.h"
#include "support/devices.h"

namespace dtrain::test {

/// The properties of a test layer.
struct PlannedLayer {
  LayerRequirements requirements;
  int parameters = 0;  // number of parameters, of four elements each
  std::optional<ActivationSpec> elementwise = {};
  bool fuses = false;  // supports any fused activation
  bool adds = false;   // supports adding another value to its output
  bool is_sum = false;
};

class PlannedLayerKind final : public Layer {
 public:
  explicit PlannedLayerKind(PlannedLayer planned) : planned_(std::move(planned)) {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs, const ReportError&) const override {
    return {inputs[0]};
  }
  std::vector<ParameterSpec> parameters(std::span<const TensorSpec>) const override {
    std::vector<ParameterSpec> specs;
    for (int k = 0; k < planned_.parameters; ++k)
      specs.push_back(
          {.name = "w" + std::to_string(k), .shape = {4}, .initializer = {}, .moving_average = {}});
    return specs;
  }
  std::unique_ptr<PreparedLayer> prepare(const LayerRequest&) const override {
    return std::make_unique<Prepared>(planned_.requirements);
  }
  bool can_fuse(const ActivationSpec&) const override { return planned_.fuses; }
  bool can_add(const Ops&, const ActivationSpec&) const override { return planned_.adds; }
  bool is_sum() const override { return planned_.is_sum; }
  std::optional<ActivationSpec> elementwise() const override { return planned_.elementwise; }

 private:
  class Prepared final : public PreparedLayer {
   public:
    explicit Prepared(const LayerRequirements& requirements) { requirements_ = requirements; }
    void forward(const LayerArguments&) override {}
  };
  PlannedLayer planned_;
};

/// A graph with one input, "x" of shape [2, 2, 4], as node 0.
class PlannedGraph {
 public:
  PlannedGraph() {
    GraphNode input;
    input.name = "x";
    input.kind = "input";
    input.outputs = {{"x", {2, 2, 4}, DType::float32}};
    graph.nodes.push_back(std::move(input));
    graph.inputs = {0};
  }

  /// Adds a layer that reads the nodes `inputs`. Returns its node.
  int add(const std::string& name, const std::vector<int>& inputs, const PlannedLayer& planned) {
    GraphNode node;
    node.name = node.kind = name;
    node.layer = {name, std::make_shared<PlannedLayerKind>(planned), {}};
    std::vector<TensorSpec> specs;
    for (const int input : inputs) {
      node.inputs.push_back({input, 0});
      specs.push_back(graph.spec({input, 0}));
    }
    node.outputs = node.layer->infer(specs, nullptr);
    node.parameters = node.layer->parameters(specs);
    graph.nodes.push_back(std::move(node));
    graph.outputs = {{static_cast<int>(graph.nodes.size()) - 1, 0}};
    return graph.outputs[0].node;
  }

  Graph graph;
};

/// Returns a layer with one parameter. The backward pass of the layer reads its input.
inline PlannedLayer dense() {
  PlannedLayer layer;
  layer.parameters = 1;
  layer.fuses = true;
  layer.requirements.backward_reads_inputs = true;
  return layer;
}

inline PlannedLayer relu() {
  PlannedLayer layer;
  layer.elementwise = ActivationSpec{.kind = Activation::relu};
  layer.requirements.backward_reads_outputs = true;
  layer.requirements.forward_in_place = layer.requirements.backward_in_place = true;
  return layer;
}

inline PlannedLayer sum() {
  PlannedLayer layer;
  layer.is_sum = true;
  layer.requirements.passes_gradient = layer.requirements.forward_in_place = true;
  return layer;
}

inline PlannedLayer in_blocks() {
  PlannedLayer layer = dense();
  layer.requirements.input_layouts = layer.requirements.output_layouts = {Layout::blocked8};
  return layer;
}

/// Returns the graph of a chain: x, a, b, c.
inline Graph chain(const PlannedLayer& a, const PlannedLayer& b, const PlannedLayer& c) {
  PlannedGraph made;
  made.add("c", {made.add("b", {made.add("a", {0}, a)}, b)}, c);
  return made.graph;
}

/// The compilation of a graph for the CPU. A test runs passes and prints the program between them.
class Compilation {
 public:
  /// Compiles for training by default, with the loss of this name. `slots_of_nodes` has the slot of each
  /// node. If it is empty, all nodes are on slot 0.
  explicit Compilation(const Graph& its_graph, const std::vector<int>& slots_of_nodes = {},
                       const PlanOptions& options = {}, const std::string& loss = "mean_squared_error",
                       PlanKey::Purpose purpose = PlanKey::Purpose::training)
      : graph(its_graph),
        slots(slots_of_nodes),
        count(slots.empty() ? 1 : *std::max_element(slots.begin(), slots.end()) + 1),
        layout(graph, slots, count),
        heads(make_heads(graph, loss)),
        step(graph, layout, heads, slots, std::vector<DType>(static_cast<size_t>(count), DType::float32),
             {purpose, 1}, options) {
    for (int slot = 0; slot < count; ++slot) {
      devices.push_back(test::cpu_device());
      ops.push_back(&devices.back()->ops());
    }
  }

  /// Runs the passes that turn annotated nodes into instructions.
  void lower() {
    layers = prepare_layers(step, ops);
    lower_forward(step);
    lower_losses(step);
    lower_backward(step);
  }
  /// Returns the program's instructions after an empty line, for comparison with a raw string.
  std::string text() const { return "\n" + instructions_text(step.program); }

  const Graph graph;
  const std::vector<int> slots;
  const int count;
  const ModelLayout layout;
  const std::vector<Head> heads;
  std::vector<std::unique_ptr<test::Device>> devices;
  std::vector<Ops*> ops;
  CompileState step;
  PreparedLayers layers;

 private:
  static std::vector<Head> make_heads(const Graph& graph, const std::string& kind) {
    Diagnostics diagnostics;
    const auto loss = registry<Loss>().parse(parse_yaml(kind, "l.yaml", diagnostics), diagnostics);
    const ValueRef output = graph.outputs[0];
    const auto target = loss->target(graph.spec(output), [](const std::string& m) { FAIL_CHECK(m); });
    return {{output, loss.value, {}, *target}};
  }
};

/// Runs the passes that emit the forward pass and the gradients.
inline void lower(std::initializer_list<Compilation*> all) {
  for (Compilation* made : all) {
    find_gradients(made->step);
    made->lower();
  }
}

}  // namespace dtrain::test
