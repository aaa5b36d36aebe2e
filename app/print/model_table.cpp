#include "print/model_table.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"

namespace dtrain {

std::vector<LayerRow> layer_rows(const Graph& graph) {
  std::vector<LayerRow> rows;
  std::vector<size_t> row_of;  // row of each node
  for (const GraphNode& node : graph.nodes) {
    if (node.is_activation_of_previous) {
      row_of.push_back(row_of[static_cast<size_t>(node.inputs[0].node)]);
      rows[row_of.back()].output = node.outputs[0];
      continue;
    }
    row_of.push_back(rows.size());
    LayerRow row{.name = node.name,
                 .kind = node.kind,
                 .inputs = {},
                 .output = node.outputs[0],
                 .trainable = node.trainable,
                 .shared_with = {},
                 .recompute = node.recompute,
                 .node = static_cast<int>(row_of.size()) - 1};
    for (const ValueRef& input : node.inputs) row.inputs.push_back(graph.layer_name(input.node));
    if (node.shared_with >= 0)
      row.shared_with = graph.nodes[static_cast<size_t>(node.shared_with)].name;
    else
      for (const ParameterSpec& parameter : node.parameters) row.parameters += parameter.shape.elements();
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<std::string> devices_of(const Placement& placement, const LayerRow& row) {
  std::vector<std::string> names;
  for (const DeviceId& device : placement.devices_of(row.node)) names.push_back(device.str());
  return names;
}

namespace {

std::string shards_text(ShardLevel level) {
  switch (level) {
    case ShardLevel::none:
      return "";
    case ShardLevel::optimizer:
      return "optimizer's slots";
    case ShardLevel::gradients:
      return "slots and gradients";
    case ShardLevel::parameters:
      return "slots, gradients and parameters";
  }
  return "";
}

std::string parameters_text(const LayerRow& row) {
  const std::string frozen = row.trainable ? "" : " (frozen)";
  if (!row.shared_with.empty()) return "of " + row.shared_with + frozen;
  return (row.parameters == 0 ? "" : format_count(row.parameters)) + frozen;
}

}  // namespace

std::string placement_text(const Placement& placement) {
  const auto count = [](const auto& list) { return static_cast<int64_t>(list.size()); };
  std::string text = format_plural(count(placement.replicas), "replica");
  if (!placement.slots.empty())
    text += fmt::format(" of {}", format_plural(count(placement.replicas[0]),
                                                placement.microbatches > 1 ? "stage" : "device"));
  if (placement.microbatches > 1)
    text += fmt::format(", {} microbatches", format_count(placement.microbatches));
  if (placement.sharded != ShardLevel::none)
    text += fmt::format(", each with a part of the {}", shards_text(placement.sharded));
  return text;
}

std::string layer_table(const Graph& graph, const Placement& placement) {
  const std::vector<LayerRow> rows = layer_rows(graph);
  const bool recomputes =
      std::any_of(rows.begin(), rows.end(), [](const LayerRow& row) { return row.recompute >= 0; });
  std::vector<Table::Column> columns{
      {"layer"}, {"kind"}, {"output shape"}, {"parameters", Table::Align::right}, {"device"}};
  if (recomputes) columns.push_back({"recomputed", Table::Align::right});
  columns.push_back({"inputs"});
  Table table(columns);
  std::string previous;
  for (const LayerRow& row : rows) {
    // Most layers read only the previous layer. The table omits the input of these layers.
    const bool chained = row.inputs.size() == 1 && row.inputs[0] == previous;
    const std::vector<std::string> devices = devices_of(placement, row);
    std::vector<std::string> cells{row.name, row.kind, row.output.shape.str(), parameters_text(row),
                                   devices.empty() ? "-" : fmt::format("{}", fmt::join(devices, " "))};
    if (recomputes) cells.push_back(row.recompute < 0 ? "" : std::to_string(row.recompute));
    cells.push_back(chained ? "" : fmt::format("{}", fmt::join(row.inputs, ", ")));
    table.add(cells);
    previous = row.name;
  }
  return table.str();
}

}  // namespace dtrain
