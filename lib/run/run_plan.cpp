#include "run/run_plan.h"

#include <span>
#include <string_view>
#include <utility>

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
  Placement placement = place_replicas(config, diagnostics);
  diagnostics.throw_if_errors();
  return {std::move(config), std::move(placement), world, diagnostics.warnings()};
}

RunPlan plan_training(RunConfig config, World& world) {
  const auto begin = std::chrono::steady_clock::now();
  set_nccl_environment(config.train.deterministic);
  Diagnostics diagnostics;
  Placement placement = place_replicas(config, diagnostics);
  check_constraints(config, placement, diagnostics);
  check_train_split(config, diagnostics);
  diagnostics.throw_if_errors();
  // Measured times differ from run to run, so deterministic runs use estimates.
  if (!config.train.deterministic && !config.strategy->open_options().empty())
    placement = place_by_measuring(config, world);
  settle(config, placement);
  return {.config = std::move(config),
          .placement = std::move(placement),
          .world = world,
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
