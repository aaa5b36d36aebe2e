// Finds strategies with which a run fits into a machine's memory, and estimates their speed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "estimate/machine.h"
#include "run/run_config.h"

namespace dtrain {

/// A strategy with concrete devices and no automatic options, and its requirements.
struct Candidate {
  std::string name;                          // "sharded, gradients"
  ConfigNode strategy;                       // {kind: options}
  std::vector<std::string> recomputed = {};  // recomputed blocks, such as "wide" for "wide/dense"
  int64_t batch_size = 0;  // the configured one, or else the largest that fits; 1 if none does
  bool fits = false;
  std::string device;       // the device with the largest use, or "the host"
  int64_t bytes = 0;        // used memory of that device
  int64_t copy_bytes = 0;   // additional host memory for a copy of the state while it is saved; 0 on GPUs
  double step_seconds = 0;  // estimated; 0 if it does not fit
  std::string refusal;      // why the model cannot be trained with this strategy; usually ""

  double samples_per_second() const {
    return step_seconds > 0 ? static_cast<double>(batch_size) / step_seconds : 0;
  }
};

/// Tries the strategies single, mirrored, sharded at each level, pipeline with the stages of auto_stages()
/// and, if the model has independent branches, placed with the slots of place_branches(). If the configured
/// batch does not fit, also tries to recompute the model's blocks, unless the model itself defines what is
/// recomputed. The result is sorted by samples per second, so that strategies that fit come first. Memory
/// is planned as for a run, without allocating anything, but the plans of GPUs are made for the CPU. Times
/// are estimates. Layers take the time of estimate_layer_seconds(). A gather or reduce-scatter transfers (n -
/// 1) / n of the bytes in a ring, and an all-reduce transfers twice as much; on GPUs, these transfers overlap
/// with computation. simulate() estimates pipelines, and branches_seconds() estimates branches. Throws
/// UserError if the machine cannot train this run at all.
std::vector<Candidate> what_fits(const RunConfig& config, const Machine& machine);

}  // namespace dtrain
