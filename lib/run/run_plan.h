// The plan of a run: its configuration and the devices that it uses, decided once for all later code.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "collective/world.h"
#include "device/device.h"
#include "distribute/strategy.h"
#include "run/run_config.h"

namespace dtrain {

/// A run on this machine. A command makes one plan from the parsed configuration and passes it on, so that
/// nothing is placed twice.
struct RunPlan {
  RunConfig config;
  Placement placement;
  World& world;  // the processes of the run; must outlive the plan
  // Ranks of the placement's replicas, which all belong to this process. If the processes divide the replicas
  // (has_divided_replicas()), the ranks are those of a run of this process alone.
  ReplicaRanks ranks;
  std::vector<std::string> warnings = {};  // warnings of the placement, as lines of Diagnostics::warnings()
  std::vector<int> cores = available_cores();  // cores for the replicas on CPUs
  /// Whether matrix products on CPUs have rows whose bits do not depend on the other rows (make_cpu_ops()),
  /// so that predictions do not depend on the batch.
  bool independent_rows = false;
  /// The time at which planning began; train.max_time counts from this time.
  std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();

  /// Returns whether each process has some slots of every replica, instead of whole replicas.
  bool has_divided_replicas() const { return placement.divides_replicas && world.size() > 1; }
  /// The number of slots of a replica. slots_of() returns the slots that a process has.
  int slots() const { return static_cast<int>(placement.replicas.at(0).size()); }
  Range slots_of(int process) const {
    return has_divided_replicas() ? part_of(slots(), process, world.size()) : Range{0, slots()};
  }
  /// The processes among which whole replicas are divided.
  World& world_of_replicas() const { return has_divided_replicas() ? single_process() : world; }
  /// The placement with the replicas of all processes, as if all were on the devices of this process.
  Placement placement_of_all() const;
};

/// Places a run as place_replicas() does (run/placement.h). Automatic options of the strategy remain in the
/// configuration. Throws UserError that lists, each with its location, everything that this machine, or a run
/// of several processes, does not support.
RunPlan plan_run(RunConfig config, World& world);

/// Like plan_run(), and resolves the automatic options of the strategy: writes them and the layers' `device:`
/// options into the strategy's options, so that config.yaml records them and the model is independent of
/// hardware. The choices are those of process 0. Planning the resulting configuration again changes nothing.
/// A pipeline's `stages: auto` measures the layers on the devices, which takes seconds. Also throws UserError
/// if there is no training split. Sets the environment of NCCL (collective.h) first, because measuring starts
/// threads.
RunPlan plan_training(RunConfig config, World& world);

/// Returns `config` with the options that a saved run has chosen for its strategy, to continue that run.
/// Returns `config` unchanged unless it has the same strategy, leaves these options open, and has the same
/// other options. `saved_strategy`: the strategy in the saved run's configuration, {kind: options}.
RunConfig keep_choices(RunConfig config, const ConfigNode& saved_strategy);

}  // namespace dtrain
