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
  std::string device;       // the device with the largest use; "the host"
  int64_t bytes = 0;        // used memory of that device
  int64_t copy_bytes = 0;   // additional host memory for a copy of the state while it is saved; 0 on GPUs
  double step_seconds = 0;  // estimated; 0 if it does not fit
  std::string refusal;      // why the model cannot be trained with this strategy; usually ""

  double samples_per_second() const {
    return step_seconds > 0 ? static_cast<double>(batch_size) / step_seconds : 0;
  }
};

/// Tries single, mirrored, sharded at each level, pipelines with stages by auto_stages(), and placed by
/// place_branches() if the model has independent branches. If the configured batch does not fit, also tries
/// to recompute the model's blocks, unless the model itself defines what is recomputed. The result is sorted
/// by samples per second, so that strategies that fit come first.
/// Memory is that of the plans that a run would make, which are made for the CPU in place of GPUs; that
/// memory is not allocated. Times are estimates: layers by estimate_layer_seconds(); ring transfers of (n -
/// 1) / n of the bytes, once for a gather or reduce-scatter and twice for an all-reduce, which on GPUs
/// overlap with computation; pipelines by simulate(); branches by branches_seconds(). Throws UserError if the
/// machine cannot train this run at all.
std::vector<Candidate> what_fits(const RunConfig& config, const Machine& machine);

}  // namespace dtrain
