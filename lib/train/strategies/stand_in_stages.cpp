#include "train/strategies/stand_in_stages.h"

#include "train/strategies/common.h"

namespace dtrain {

std::vector<int> auto_stages(const Graph& graph, const std::vector<DeviceId>& devices) {
  const std::vector<int> layers = layer_nodes(graph);
  std::vector<double> sizes;
  double all = 0;
  for (const int layer : layers) {
    const GraphNode& node = graph.nodes[static_cast<size_t>(layer)];
    double size = 1;
    for (const ParameterSpec& parameter : node.parameters)
      size += static_cast<double>(parameter.shape.elements());
    for (const TensorSpec& output : node.outputs) size += static_cast<double>(output.shape.elements());
    sizes.push_back(size);
    all += size;
  }
  std::vector<int> stages(graph.nodes.size(), 0);
  const size_t count = devices.size();
  size_t stage = 0;
  double before = 0;
  for (size_t i = 0; i < layers.size(); ++i) {
    const bool is_due = before * static_cast<double>(count) >= all * static_cast<double>(stage + 1);
    const bool must = layers.size() - i == count - 1 - stage;  // else a stage behind would have no layer
    if (i > 0 && stage + 1 < count && (is_due || must)) ++stage;
    const auto end = i + 1 < layers.size() ? static_cast<size_t>(layers[i + 1]) : stages.size();
    for (auto node = static_cast<size_t>(layers[i]); node < end; ++node)
      stages[node] = static_cast<int>(stage);
    before += sizes[i];
  }
  return stages;
}

}  // namespace dtrain
