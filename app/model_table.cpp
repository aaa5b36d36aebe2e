#include "model_table.h"

namespace dtrain {

std::vector<LayerRow> layer_rows(const Graph& graph) {
  std::vector<LayerRow> rows;
  std::vector<size_t> row_of;  // by node
  for (const GraphNode& node : graph.nodes) {
    if (node.is_activation_of_previous) {
      row_of.push_back(row_of[static_cast<size_t>(node.inputs[0].node)]);
      rows[row_of.back()].output = node.outputs[0];
      continue;
    }
    row_of.push_back(rows.size());
    LayerRow row{node.name, node.kind, {}, node.outputs[0], 0, node.trainable};
    for (const ValueRef& input : node.inputs) row.inputs.push_back(graph.layer_name(input.node));
    for (const ParameterSpec& parameter : node.parameters) row.parameters += parameter.shape.elements();
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace dtrain
