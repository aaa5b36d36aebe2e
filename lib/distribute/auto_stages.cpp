#include "distribute/auto_stages.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "distribute/graph_flow.h"
#include "distribute/layer_times.h"

namespace dtrain {

namespace {

int64_t value_bytes(const TensorSpec& spec, const PipelineWork& work) {
  const size_t element = spec.dtype == DType::float32 ? work.element_bytes : bytes_of(spec.dtype);
  return work.samples * spec.shape.elements() * static_cast<int64_t>(element);
}

int64_t parameter_bytes(const GraphNode& node, const PipelineWork& work) {
  constexpr int64_t kFloat = sizeof(float);
  const int64_t copy = work.element_bytes < sizeof(float) ? static_cast<int64_t>(work.element_bytes) : 0;
  int64_t bytes = 0;
  for (const ParameterSpec& parameter : node.parameters) {
    int64_t each = kFloat + copy;
    if (node.trains(parameter)) each += kFloat + work.slot_bytes;
    if (node.trainable && parameter.moving_average) each += kFloat;
    bytes += each * parameter.shape.elements();
  }
  return bytes;
}

StageNode stage_node(const Graph& graph, size_t i, const NodeFlow& flow, const PipelineWork& work) {
  const GraphNode& node = graph.nodes[i];
  StageNode made{.is_input = !node.layer};
  if (made.is_input) return made;
  const bool is_fused = flow.fused_into >= 0;
  made.stays = node.is_activation_of_previous || (is_fused && flow.fused_into + 1 == static_cast<int>(i));
  for (int owner = node.shared_with; owner >= 0; owner = graph.nodes[static_cast<size_t>(owner)].shared_with)
    made.parameters_of = owner;
  made.parameter_bytes = parameter_bytes(node, work);
  if (!is_fused)
    for (const TensorSpec& output : node.outputs) made.activation_bytes += value_bytes(output, work);
  return made;
}

std::vector<StageValue> stage_values(const Graph& graph, const PipelineWork& work) {
  std::vector<StageValue> values;
  std::vector<size_t> first;  // for each node, the index of its first output in `values`
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    first.push_back(values.size());
    for (const TensorSpec& output : graph.nodes[i].outputs)
      values.push_back({static_cast<int>(i), value_bytes(output, work), {}});
    const auto add_reader = [&](ValueRef value) {
      const size_t number = first[static_cast<size_t>(value.node)] + static_cast<size_t>(value.output);
      std::vector<int>& readers = values[number].readers;
      if (readers.empty() || readers.back() != static_cast<int>(i)) readers.push_back(static_cast<int>(i));
    };
    for (const ValueRef input : graph.nodes[i].inputs) add_reader(input);
    for (const ValueRef mask : graph.nodes[i].masks)
      if (mask != ValueRef()) add_reader(mask);
  }
  return values;
}

/// Finds the activations that are read only within their own recomputed segment. They exist only during the
/// backward pass of this segment. Their bytes are therefore subtracted from activation_bytes of their node,
/// and added to recomputed_bytes of the segment's last node.
void set_recomputed(const Graph& graph, StageProblem& problem) {
  const auto segment_of = [&](int node) { return graph.nodes[static_cast<size_t>(node)].recompute; };
  std::set<int> kept;
  for (const StageValue& value : problem.values)
    if (value.readers.empty() || std::any_of(value.readers.begin(), value.readers.end(), [&](int reader) {
          return segment_of(reader) != segment_of(value.node);
        }))
      kept.insert(value.node);
  std::map<int, int> last;
  for (size_t i = 0; i < graph.nodes.size(); ++i) last[graph.nodes[i].recompute] = static_cast<int>(i);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const int segment = graph.nodes[i].recompute;
    if (segment < 0 || kept.contains(static_cast<int>(i))) continue;
    problem.nodes[static_cast<size_t>(last[segment])].recomputed_bytes +=
        std::exchange(problem.nodes[i].activation_bytes, 0);
  }
}

}  // namespace

StageProblem stage_problem(const Graph& graph, std::span<const PipelineDevice> devices,
                           const PipelineWork& work) {
  StageProblem problem;
  problem.seconds_per_byte = work.seconds_per_byte;
  const std::vector<NodeFlow> flow = flow_of(graph);
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    problem.nodes.push_back(stage_node(graph, i, flow[i], work));
  problem.values = stage_values(graph, work);
  set_recomputed(graph, problem);
  const int stages = static_cast<int>(devices.size());
  for (const PipelineDevice& device : devices) {
    const int stage = static_cast<int>(problem.devices.size());
    std::vector<double> seconds =
        device.seconds.empty()
            ? estimate_layer_seconds(graph, work.samples, typical_speed(device.device.kind))
            : device.seconds;
    // Recomputation adds a second forward pass, which takes a third of the time of forward and backward.
    for (size_t i = 0; i < graph.nodes.size(); ++i)
      if (graph.nodes[i].recompute >= 0) seconds[i] *= 4.0 / 3;
    problem.devices.push_back({.seconds = std::move(seconds),
                               .bytes = device.bytes,
                               .in_flight = most_in_flight(work.schedule, stage, stages, work.microbatches)});
  }
  return problem;
}

StageCut auto_stages(const Graph& graph, std::span<const PipelineDevice> devices, const PipelineWork& work) {
  return choose_stages(stage_problem(graph, devices, work));
}

}  // namespace dtrain
