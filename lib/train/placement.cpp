#include "train/placement.h"

#include <algorithm>

#include <fmt/format.h>

namespace dtrain {

namespace {

void check_precision(const RunConfig& config, const std::vector<DeviceId>& devices,
                     Diagnostics& diagnostics) {
  if (config.train.precision == Precision::float32) return;
  const auto cpu = std::find_if(devices.begin(), devices.end(),
                                [](const DeviceId& device) { return device.kind == DeviceId::Kind::cpu; });
  if (cpu == devices.end()) return;
  diagnostics.error(config.place({"train", "precision"}),
                    fmt::format("{}: precision {} is for GPUs; the CPU computes in float32 (--set "
                                "train.precision=float32)",
                                cpu->str(), Codec<Precision>::write(config.train.precision).text()));
}

/// The output of the node that has the most elements a sample.
const TensorSpec& largest_output(const GraphNode& node) {
  return *std::max_element(
      node.outputs.begin(), node.outputs.end(),
      [](const TensorSpec& a, const TensorSpec& b) { return a.shape.elements() < b.shape.elements(); });
}

/// The node one of whose outputs has the most elements a sample.
const GraphNode* largest_node(const Graph& graph) {
  const auto elements = [](const GraphNode& node) { return largest_output(node).shape.elements(); };
  const auto largest =
      std::max_element(graph.nodes.begin(), graph.nodes.end(),
                       [&](const GraphNode& a, const GraphNode& b) { return elements(a) < elements(b); });
  return largest == graph.nodes.end() ? nullptr : &*largest;
}

void check_shares(const RunConfig& config, size_t replicas, Diagnostics& diagnostics) {
  const GraphNode* largest = largest_node(config.graph);
  if (!largest) return;
  const int64_t elements = std::max<int64_t>(largest_output(*largest).shape.elements(), 1);
  // Validation takes a share as a whole.
  const int64_t microbatches =
      config.dataset.validation ? 1 : std::min<int64_t>(config.train.accumulate, INT32_MAX);
  const auto parts = static_cast<double>(replicas) * static_cast<double>(microbatches);
  const int64_t most_of_a_part = kMostArrayElements / elements;
  const double most = static_cast<double>(most_of_a_part) * parts;
  if (static_cast<double>(config.train.batch_size) <= most) return;
  diagnostics.error(
      config.place({"train", "batch_size"}),
      fmt::format(
          "batch_size: {} '{}' makes {} of each sample, and an array may have {} elements: expected at most "
          "{:.0f} over {} replica{}, found {}",
          largest->kind, largest->name, largest_output(*largest).shape.str(), kMostArrayElements, most,
          replicas, replicas == 1 ? "" : "s", config.train.batch_size));
}

}  // namespace

Placement place_replicas(const RunConfig& config, Diagnostics& diagnostics) {
  Placement placement = config.strategy->place(diagnostics);
  if (placement.replicas.empty()) return placement;
  check_precision(config, placement.devices(), diagnostics);
  check_shares(config, placement.replicas.size(), diagnostics);
  return placement;
}

Placement place_replicas(const RunConfig& config) {
  Diagnostics diagnostics;
  Placement placement = place_replicas(config, diagnostics);
  diagnostics.throw_if_errors();
  return placement;
}

Placement place_for_training(const RunConfig& config) {
  Diagnostics diagnostics;
  Placement placement = place_replicas(config, diagnostics);
  check_train_split(config, diagnostics);
  diagnostics.throw_if_errors();
  return placement;
}

void check_train_split(const RunConfig& config, Diagnostics& diagnostics) {
  if (!config.dataset.train)
    diagnostics.error(config.place({"dataset"}), "the data set has no 'train' split to train on");
}

}  // namespace dtrain
