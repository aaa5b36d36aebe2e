// Finds strategies with which a run fits into a machine's memory, and estimates their speed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "estimate/machine.h"
#include "run/run_config.h"

namespace dtrain {

/// A strategy, the configuration changes that it requires, and its estimated memory and speed. Its options
/// name concrete devices and contain no `auto`.
struct Candidate {
  std::string name;     // "sharded, gradients"
  ConfigNode strategy;  // {kind: options}
  // Names of the recomputed blocks; the layer "wide/dense" is in the block "wide".
  std::vector<std::string> recomputed = {};
  int64_t batch_size = 0;  // the configured batch size, or else the largest one that fits; 1 if no batch fits
  bool fits = false;
  std::string device;       // the device whose memory is fullest, or "the host"
  int64_t bytes = 0;        // memory that is used on this device
  int64_t copy_bytes = 0;   // host memory for an additional copy of the state while it is saved; 0 on GPUs
  double step_seconds = 0;  // estimated time of a step; 0 if the run does not fit
  std::string refusal;      // the reason why the model cannot be trained with this strategy; "" if it can

  double samples_per_second() const {
    return step_seconds > 0 ? static_cast<double>(batch_size) / step_seconds : 0;
  }
};

/// Tries the following strategies: single, mirrored, sharded at each level, and pipeline with the stages of
/// auto_stages(). If the model has independent branches, also tries the strategy `placed` with the
/// slots that place_branches() returns. If the configured batch does not fit, each strategy is also tried
/// with the model's blocks recomputed, unless the model already defines what is recomputed. The result is
/// sorted by samples per second. Strategies that do not fit are last.
///
/// Memory is planned in the same way as for a run, but nothing is allocated. Plans for GPUs are derived from
/// plans for the CPU. All times are estimates. The time of a layer is computed by estimate_layer_seconds(). A
/// gather or reduce-scatter in a ring transfers (n - 1) / n of the bytes, and an all-reduce transfers twice
/// as much. On GPUs, these transfers overlap with computation. simulate() estimates the time of a
/// pipeline, and branches_seconds() the time of branches. Throws UserError if the machine cannot train this
/// run at all.
std::vector<Candidate> what_fits(const RunConfig& config, const Machine& machine);

}  // namespace dtrain
