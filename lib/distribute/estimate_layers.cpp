#include <algorithm>

#include "distribute/graph_flow.h"
#include "distribute/layer_times.h"

namespace dtrain {

namespace {

/// Work of one pass over a layer. A pass is the forward pass, the computation of the input gradients, or the
/// computation of the parameter gradients.
struct PassWork {
  double multiply_adds = 0, bytes = 0;
};

double bytes_of_batch(const TensorSpec& spec, int64_t batch) {
  return static_cast<double>(batch * spec.shape.elements()) * static_cast<double>(bytes_of(spec.dtype));
}

/// Returns the number of positions in a sample to which a kernel is applied. A convolution kernel (rank 4, or
/// rank 5 for volumes) is applied at each position of the output. The kernel of a transposed convolution is
/// applied at each position of the input. In both cases, the result is the number of positions of the smaller
/// image (input or output). Any other kernel is applied to each row of the input or of the output, whichever
/// has more rows.
int64_t places_of(const Graph& graph, const GraphNode& node, const Shape& kernel) {
  const int64_t in = node.inputs.empty() ? 1 : graph.spec(node.inputs[0]).shape.positions();
  const int64_t out = node.outputs[0].shape.positions();
  constexpr size_t kImageKernelRank = 4;
  return kernel.rank() >= kImageKernelRank ? std::min(in, out) : std::max(in, out);
}

PassWork forward_work(const Graph& graph, const GraphNode& node, int64_t batch) {
  PassWork work;
  for (const ValueRef input : node.inputs) work.bytes += bytes_of_batch(graph.spec(input), batch);
  for (const TensorSpec& output : node.outputs) work.bytes += bytes_of_batch(output, batch);
  if (node.layer->indices()) return work;  // a lookup reads only some rows of the embedding table
  for (const ParameterSpec& parameter : node.parameters) {
    const auto elements = static_cast<double>(parameter.shape.elements());
    work.bytes += elements * sizeof(float);
    if (parameter.shape.rank() >= 2)
      work.multiply_adds += static_cast<double>(batch * places_of(graph, node, parameter.shape)) * elements;
  }
  return work;
}

double parameter_bytes(const GraphNode& node) {
  double bytes = 0;
  for (const ParameterSpec& parameter : node.parameters)
    bytes += static_cast<double>(parameter.shape.elements()) * sizeof(float);
  return bytes;
}

}  // namespace

DeviceSpeed typical_speed(DeviceId::Kind kind) {
  // kCore is one core of a server CPU of 2022, measured on ResNet-50. kGpu has half of the float32 speed in
  // the data sheets of GPUs of that time. Its link is PCIe 4 with 16 lanes.
  constexpr DeviceSpeed kCore{.multiply_adds = 3e10, .bytes = 1e10, .call = 2e-6, .link = 5e9};
  constexpr DeviceSpeed kGpu{.multiply_adds = 1e13, .bytes = 1e12, .call = 5e-6, .link = 2.5e10};
  return kind == DeviceId::Kind::gpu ? kGpu : kCore;
}

std::vector<double> estimate_layer_seconds(const Graph& graph, int64_t batch, const DeviceSpeed& speed) {
  const std::vector<NodeFlow> flow = flow_of(graph);
  std::vector<double> seconds(graph.nodes.size(), 0);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const GraphNode& node = graph.nodes[i];
    if (!node.layer || flow[i].fused_into >= 0) continue;
    const PassWork pass = forward_work(graph, node, batch);
    const bool trains = node.has_moving_parameters();
    const bool wants_input_gradient =
        std::any_of(node.inputs.begin(), node.inputs.end(),
                    [&](ValueRef input) { return flow[static_cast<size_t>(input.node)].needs_gradient; });
    const int passes = 1 + (trains ? 1 : 0) + (wants_input_gradient ? 1 : 0);
    // Backward reads and writes the array of parameter gradients, because it adds to the gradients of earlier
    // microbatches.
    const double gradients = trains ? 2 * parameter_bytes(node) : 0;
    seconds[i] = passes * (pass.multiply_adds / speed.multiply_adds + pass.bytes / speed.bytes + speed.call) +
                 gradients / speed.bytes;
  }
  return seconds;
}

}  // namespace dtrain
