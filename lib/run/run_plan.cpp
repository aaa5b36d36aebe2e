#include "run/run_plan.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "collective/collective.h"
#include "collective/machine_share.h"
#include "run/measured_devices.h"
#include "run/placement.h"
#include "run/weight_columns.h"

namespace dtrain {

namespace {

void set_strategy(RunConfig& config, const ConfigNode& strategy) {
  Diagnostics diagnostics;
  config.strategy = registry<Strategy>().parse(strategy, diagnostics);
  diagnostics.throw_if_errors();
  config.resolved = config.resolved.with("strategy", config.strategy.resolved);
}

/// Returns the options in `strategy`, which is {kind: options}, as text, without the options named in
/// `left_out`.
std::string options_text(const ConfigNode& strategy, std::span<const std::string_view> left_out) {
  return strategy.entries().front().second.without(left_out).to_yaml();
}

/// Makes the automatic choices of a placement in process 0, and sends them to the other processes. The
/// choices depend on the measured speed of the devices. Measured times differ from run to run, so
/// deterministic runs use estimates instead.
void choose_slots(const RunConfig& config, World& world, Placement& placement) {
  if (world.writes_files()) {
    Workload work = workload_of(config);
    work.processes = world.size();
    if (!placement.divides_replicas) work.batch_size = 1 + (work.batch_size - 1) / world.size();
    if (!config.train.deterministic) work.measure = measured_devices(config);
    placement = config.strategy->place(work);
  }
  world.broadcast(std::as_writable_bytes(std::span(placement.slots)));
}

bool is_gpu(const DeviceId& device) {
  return device.kind == DeviceId::Kind::gpu;
}

/// Reports placements that are not supported if each replica is divided among the processes.
void check_divided_replicas(const RunConfig& config, const Placement& placement, const World& world,
                            Diagnostics& diagnostics) {
  const auto report = [&](const std::string& what) {
    diagnostics.error(config.place({"strategy"}), fmt::format("`across: processes`: {}", what));
  };
  const auto stages = static_cast<int64_t>(placement.replicas[0].size());
  if (stages < world.size())
    report(
        fmt::format("{} stage{} cannot be divided among {} processes; give at least {} devices for each "
                    "replica, such as [cpu:0, cpu:1] or [gpu:0, gpu:0], or start fewer processes",
                    stages, stages == 1 ? "" : "s", world.size(), world.size()));
  if (std::ssize(placement.replicas) * stages * stages * 2 > World::kChannels)
    report(fmt::format(
        "{} replicas with {} stages each are too many; replicas * stages * stages may be at most {}",
        placement.replicas.size(), stages, World::kChannels / 2));
}

/// Reports everything that a run of several processes does not support.
void check_processes(const RunConfig& config, const Placement& placement, const World& world,
                     Diagnostics& diagnostics) {
  if (world.size() == 1 || placement.replicas.empty()) return;
  if (placement.divides_replicas) return check_divided_replicas(config, placement, world, diagnostics);
  const auto reject = [&](const std::string& what) {
    diagnostics.error(
        config.place({"strategy"}),
        fmt::format("{} in a run of several processes ({} were started); {}", what, world.size(),
                    "use CPUs only, or a GPU for each replica or stage, or start one "
                    "process"));
  };
  const std::vector<DeviceId> devices = placement.devices();
  const auto gpus = std::count_if(devices.begin(), devices.end(), is_gpu);
  if (gpus != 0 && gpus != static_cast<int64_t>(devices.size())) reject("CPUs and GPUs cannot be mixed");
  for (size_t i = 0; i < devices.size(); ++i)
    if (is_gpu(devices[i]) && std::count(devices.begin(), devices.end(), devices[i]) > 1)
      return reject(fmt::format("several replicas or stages cannot share {}", devices[i].str()));
}

/// Returns the devices of each replica as text, such as "2 CPUs".
std::string devices_text(const Placement& placement) {
  const std::vector<DeviceId>& devices = placement.replicas[0];
  return fmt::format("{} {}{}", devices.size(), is_gpu(devices[0]) ? "GPU" : "CPU",
                     devices.size() == 1 ? "" : "s");
}

/// Returns the ranks of a placement's replicas. Throws UserError if the replicas of the processes have
/// different numbers of devices, or if some processes use CPUs, and others GPUs.
ReplicaRanks ranks_of(const RunConfig& config, const Placement& placement, World& world) {
  const std::vector<std::string> devices = world.all_gather_texts(devices_text(placement));
  const auto other =
      std::find_if(devices.begin(), devices.end(), [&](const std::string& its) { return its != devices[0]; });
  if (other != devices.end())
    throw UserError(located(
        config.place({"strategy"}),
        fmt::format(
            "a replica has {} in process 0, but {} in process {}; all processes must have the same number "
            "and kind of devices for each replica. Set the devices in the options of the strategy '{}'",
            devices[0], *other, other - devices.begin(), config.strategy.name)));
  const auto replicas = static_cast<int>(placement.replicas.size());
  return placement.divides_replicas ? ReplicaRanks{0, {replicas}} : world.replica_ranks(replicas);
}

/// Throws UserError in all processes if two processes use the same GPU. NCCL requires a different GPU for
/// each process. Must be called after ranks_of(), which ensures that all processes use GPUs or that all use
/// CPUs.
void check_shared_gpus(const RunConfig& config, const Placement& placement, World& world) {
  if (world.size() == 1 || placement.divides_replicas) return;
  std::vector<int> gpus;
  for (const DeviceId& device : placement.devices())
    if (is_gpu(device)) gpus.push_back(device.index);
  if (gpus.empty()) return;
  const std::string shared = find_shared_gpu(world, gpus);
  if (shared.empty()) return;
  throw UserError(located(config.place({"strategy"}),
                          shared + ", but NCCL needs a separate GPU for each process; start at most one "
                                   "process for each GPU, or give each process its own GPUs with "
                                   "CUDA_VISIBLE_DEVICES (for example with srun --gpus-per-task)"));
}

/// Writes the automatic choices of a placement to the configuration.
void settle(RunConfig& config, const Placement& placement) {
  const ConfigNode settled = config.strategy->settled(config.graph, placement);
  if (settled.is_null()) return;
  set_strategy(config, settled);
  for (GraphNode& node : config.graph.nodes) node.device.reset();
  config.graph.resolved = write_model(config.graph);
  config.resolved = config.resolved.with("model", config.graph.resolved);
}

}  // namespace

Placement RunPlan::placement_of_all() const {
  Placement all = placement;
  all.replicas.resize(static_cast<size_t>(ranks.total()), all.replicas[0]);
  return all;
}

RunPlan plan_run(RunConfig config, World& world) {
  Diagnostics diagnostics;
  Placement placement = place_replicas(config, diagnostics, world);
  check_processes(config, placement, world, diagnostics);
  diagnostics.throw_if_errors();
  ReplicaRanks ranks = ranks_of(config, placement, world);
  check_shared_gpus(config, placement, world);
  return {std::move(config), std::move(placement), world, std::move(ranks), diagnostics.warnings()};
}

RunPlan plan_training(RunConfig config, World& world) {
  const auto begin = std::chrono::steady_clock::now();
  set_nccl_environment(config.train.deterministic);
  Diagnostics diagnostics;
  Placement placement = place_replicas(config, diagnostics, world, true);
  check_divisors(config, diagnostics);
  check_train_split(config, diagnostics);
  check_processes(config, placement, world, diagnostics);
  diagnostics.throw_if_errors();
  ReplicaRanks ranks = ranks_of(config, placement, world);
  check_shared_gpus(config, placement, world);
  if (!config.strategy->open_options().empty()) choose_slots(config, world, placement);
  settle(config, placement);
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
