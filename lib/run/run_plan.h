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

/// A run on this machine. A command makes one plan from the parsed configuration and passes this plan to all
/// later code, so that all code uses the same placement.
struct RunPlan {
  RunConfig config;
  Placement placement;
  World& world;  // the processes of the run; must outlive the plan
  // Ranks of the replicas in `placement` (all of them belong to this process) among the replicas of all
  // processes. If each replica is split across processes (has_divided_replicas()), the ranks are the same as
  // in a run with a single process.
  ReplicaRanks ranks;
  std::vector<std::string> warnings = {};  // warnings of the placement, as lines of Diagnostics::warnings()
  std::vector<int> cores = available_cores();  // cores for the replicas on CPUs
  /// If true, each row of a matrix product on a CPU is computed independently of the other rows
  /// (make_cpu_ops()), so that predictions do not depend on the batch.
  bool independent_rows = false;
  /// The time at which planning began; train.max_time counts from this time.
  std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();

  /// Returns whether each process has some slots of every replica, instead of whole replicas.
  bool has_divided_replicas() const { return placement.divides_replicas && world.size() > 1; }
  /// Returns the number of slots of a replica. slots_of() returns the slots that belong to a process.
  int slots() const { return static_cast<int>(placement.replicas.at(0).size()); }
  Range slots_of(int process) const {
    return has_divided_replicas() ? part_of(slots(), process, world.size()) : Range{0, slots()};
  }
  /// Returns the processes among which whole replicas are distributed. If each replica is divided among the
  /// processes, this is only this process.
  World& world_of_replicas() const { return has_divided_replicas() ? single_process() : world; }
  /// Returns a placement with the replicas of all processes. The replicas of other processes have the devices
  /// of the first replica of this process.
  Placement placement_of_all() const;
};

/// Places a run as place_replicas() does (run/placement.h). Automatic options of the strategy remain
/// automatic in the configuration. Throws UserError if the run is not possible on this machine, or not
/// supported with several processes. The message lists all problems with their locations.
RunPlan plan_run(RunConfig config, World& world);

/// Like plan_run(), but also resolves the automatic options of the strategy. The chosen values and the
/// `device:` options of layers are written to the options of the strategy, so that config.yaml records them
/// and the model does not depend on the hardware. Process 0 makes the choices for all processes. If the
/// resulting configuration is planned again, the plan is the same. For `stages: auto` of a pipeline, the
/// layers are measured on the devices, which takes some seconds. Also throws UserError if there is no
/// training split. Sets the environment of NCCL (collective.h) first, because measuring starts threads.
RunPlan plan_training(RunConfig config, World& world);

/// Returns `config` with the automatic options of its strategy replaced by the values that were chosen in a
/// saved run, so that the saved run can be continued. Returns `config` unchanged if its strategy is not that
/// of the saved run, if the strategy has no automatic options, or if other options of the strategy differ.
/// `saved_strategy`: the strategy in the configuration of the saved run, {kind: options}.
RunConfig keep_choices(RunConfig config, const ConfigNode& saved_strategy);

}  // namespace dtrain
