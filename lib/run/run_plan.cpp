#include "run/run_plan.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "collective/collective.h"
#include "run/measured_devices.h"
#include "run/placement.h"

namespace dtrain {

namespace {

void set_strategy(RunConfig& config, const ConfigNode& strategy) {
  Diagnostics diagnostics;
  config.strategy = registry<Strategy>().parse(strategy, diagnostics);
  diagnostics.throw_if_errors();
  config.resolved = config.resolved.with("strategy", config.strategy.resolved);
}

/// Returns the options of {kind: options} as text, without `left_out`.
std::string options_text(const ConfigNode& strategy, std::span<const std::string_view> left_out) {
  return strategy.entries().front().second.without(left_out).to_yaml();
}

/// Returns a placement whose automatic choices follow the speed of the devices, as measured by process 0.
Placement place_by_measuring(const RunConfig& config, World& world) {
  Workload work = workload_of(config);
  work.measure = measured_devices(config);
  Placement placement = config.strategy->place(work);
  world.broadcast(std::as_writable_bytes(std::span(placement.slots)));
  return placement;
}

bool is_gpu(const DeviceId& device) {
  return device.kind == DeviceId::Kind::gpu;
}

/// Reports everything that a run of several processes does not support.
void check_processes(const RunConfig& config, const Placement& placement, const World& world,
                     Diagnostics& diagnostics) {
  if (world.size() == 1 || placement.replicas.empty()) return;
  const auto reject = [&](const std::string& what) {
    diagnostics.error(config.place({"strategy"}),
                      fmt::format("{} over several processes ({} were started): {}", what, world.size(),
                                  "use strategy 'mirrored' or 'sharded' with CPUs only, or with a GPU for "
                                  "each replica, or start one "
                                  "process"));
  };
  if (placement.replicas[0].size() > 1)
    return reject(fmt::format("strategy '{}' does not divide a model over devices", config.strategy.name));
  const std::vector<DeviceId> devices = placement.devices();
  const auto gpus = std::count_if(devices.begin(), devices.end(), is_gpu);
  if (gpus != 0 && gpus != static_cast<int64_t>(devices.size())) reject("CPUs and GPUs cannot be mixed");
  for (size_t i = 0; i < devices.size(); ++i)
    if (is_gpu(devices[i]) && std::count(devices.begin(), devices.end(), devices[i]) > 1)
      return reject(fmt::format("several replicas on {} do not train", devices[i].str()));
}

/// Returns the ranks of a placement's replicas. Throws UserError if some processes use CPUs, and others GPUs.
ReplicaRanks ranks_of(const RunConfig& config, const Placement& placement, World& world) {
  const std::string device = is_gpu(placement.replicas[0][0]) ? "GPUs" : "CPUs";
  const std::vector<std::string> devices = world.all_gather_texts(device);
  const auto other =
      std::find_if(devices.begin(), devices.end(), [&](const std::string& its) { return its != devices[0]; });
  if (other != devices.end())
    throw UserError(located(
        config.place({"strategy"}),
        fmt::format(
            "process 0 has {}, but process {} has {}: all processes must have the same kind of device; "
            "name the devices: strategy: {{mirrored: {{devices: ...}}}}",
            devices[0], other - devices.begin(), *other)));
  return world.replica_ranks(static_cast<int>(placement.replicas.size()));
}

/// Records the choices of a placement in the configuration.
void settle(RunConfig& config, const Placement& placement) {
  const ConfigNode settled = config.strategy->settled(config.graph, placement);
  if (settled.is_null()) return;
  set_strategy(config, settled);
  for (GraphNode& node : config.graph.nodes) node.device.reset();
  config.graph.resolved = write_model(config.graph);
  config.resolved = config.resolved.with("model", config.graph.resolved);
}

}  // namespace

RunPlan plan_run(RunConfig config, World& world) {
  Diagnostics diagnostics;
  Placement placement = place_replicas(config, diagnostics, world);
  check_processes(config, placement, world, diagnostics);
  diagnostics.throw_if_errors();
  ReplicaRanks ranks = ranks_of(config, placement, world);
  return {std::move(config), std::move(placement), world, std::move(ranks), diagnostics.warnings()};
}

RunPlan plan_training(RunConfig config, World& world) {
  const auto begin = std::chrono::steady_clock::now();
  set_nccl_environment(config.train.deterministic);
  Diagnostics diagnostics;
  Placement placement = place_replicas(config, diagnostics, world, true);
  check_constraints(config, placement, diagnostics);
  check_activity_regularizers(config, diagnostics);
  check_train_split(config, diagnostics);
  check_processes(config, placement, world, diagnostics);
  diagnostics.throw_if_errors();
  // Measured times differ from run to run, so deterministic runs use estimates.
  if (!config.train.deterministic && !config.strategy->open_options().empty())
    placement = place_by_measuring(config, world);
  settle(config, placement);
  ReplicaRanks ranks = ranks_of(config, placement, world);
  return {.config = std::move(config),
          .placement = std::move(placement),
          .world = world,
          .ranks = std::move(ranks),
          .warnings = diagnostics.warnings(),
          .begin = begin};
}

RunConfig keep_choices(RunConfig config, const ConfigNode& saved_strategy) {
  const std::vector<std::string_view> open = config.strategy->open_options();
  const ConfigNode& asked = config.strategy.resolved;
  if (open.empty() || !saved_strategy.find(config.strategy.name)) return config;
  if (options_text(asked, open) == options_text(saved_strategy, open)) set_strategy(config, saved_strategy);
  return config;
}

}  // namespace dtrain
