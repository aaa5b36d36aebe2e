#include "run/placement.h"

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
                    fmt::format("{}: precision {} is for GPUs, but CPUs compute only in float32; "
                                "use --set train.precision=float32",
                                cpu->str(), Codec<Precision>::write(config.train.precision).text()));
}

/// Returns the node's output with the most elements per sample.
const TensorSpec& largest_output(const GraphNode& node) {
  return *std::max_element(
      node.outputs.begin(), node.outputs.end(),
      [](const TensorSpec& a, const TensorSpec& b) { return a.shape.elements() < b.shape.elements(); });
}

/// Returns the node with the largest output per sample; null if the graph is empty.
const GraphNode* largest_node(const Graph& graph) {
  const auto elements = [](const GraphNode& node) { return largest_output(node).shape.elements(); };
  const auto largest =
      std::max_element(graph.nodes.begin(), graph.nodes.end(),
                       [&](const GraphNode& a, const GraphNode& b) { return elements(a) < elements(b); });
  return largest == graph.nodes.end() ? nullptr : &*largest;
}

void check_shares(const RunConfig& config, const Placement& placement, Diagnostics& diagnostics) {
  const GraphNode* largest = largest_node(config.graph);
  if (!largest) return;
  const int64_t elements = std::max<int64_t>(largest_output(*largest).shape.elements(), 1);
  // In training, `accumulate` divides a batch into microbatches. A validation batch is not divided by
  // `accumulate`, so with a validation split only the microbatches of a pipeline count.
  const double accumulated = config.dataset.validation ? 1 : static_cast<double>(config.train.accumulate);
  const double microbatches = accumulated * static_cast<double>(placement.microbatches);
  const auto replicas = placement.replicas.size();
  const double parts = static_cast<double>(replicas) * microbatches;
  const int64_t most_of_a_part = kMostArrayElements / elements;
  const double most = static_cast<double>(most_of_a_part) * parts;
  if (static_cast<double>(config.train.batch_size) <= most) return;
  diagnostics.error(
      config.place({"train", "batch_size"}),
      fmt::format(
          "batch_size: {} is too large; at most {:.0f} samples are possible with {} replica{}, because the "
          "output of {} '{}' has the shape {} for each sample, and an array may have at most {} elements",
          config.train.batch_size, most, replicas, replicas == 1 ? "" : "s", largest->kind, largest->name,
          largest_output(*largest).shape.str(), kMostArrayElements));
}

}  // namespace

Workload workload_of(const RunConfig& config) {
  const bool averages =
      std::any_of(config.train.callbacks.begin(), config.train.callbacks.end(),
                  [](const auto& callback) { return callback && callback->average_decay(); });
  const std::vector<Optimizer::Slot> all = config.slots();
  // Counts only slots with the shape of the weight, because other slots are small.
  const auto slots = std::count_if(all.begin(), all.end(),
                                   [](const auto& slot) { return slot.shape == SlotShape::weight; }) +
                     (averages ? 1 : 0);
  return {.graph = config.graph,
          .batch_size = 1 + (config.train.batch_size - 1) / config.train.accumulate,
          .slot_bytes = slots * static_cast<int64_t>(sizeof(float)),
          .element_bytes = bytes_of(gpu_math(config.train).type)};
}

Placement place_replicas(const RunConfig& config, Diagnostics& diagnostics, const World& world, bool trains) {
  Workload work = workload_of(config);
  work.process = world.rank();
  work.processes = world.size();
  work.trains = trains;
  Placement placement = config.strategy->place(work, diagnostics);
  if (placement.replicas.empty()) return placement;
  check_precision(config, placement.devices(), diagnostics);
  check_shares(config, placement, diagnostics);
  return placement;
}

std::vector<std::string> placement_warnings(const RunConfig& config) {
  Diagnostics diagnostics;
  place_replicas(config, diagnostics);
  return diagnostics.warnings();
}

void check_train_split(const RunConfig& config, Diagnostics& diagnostics) {
  if (!config.dataset.train)
    diagnostics.error(config.place({"dataset"}),
                      "the data set has no 'train' split, which training requires");
}

}  // namespace dtrain
