// With which strategies a run would fit into the memory of some machine, and about how fast it would be.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "estimate/machine.h"
#include "run/run_config.h"

namespace dtrain {

/// A strategy, with the devices of the machine and all choices made, and what it takes.
struct Candidate {
  std::string name;                          // "sharded, gradients"
  ConfigNode strategy;                       // {kind: options}
  std::vector<std::string> recomputed = {};  // the blocks, where any are: "wide", of "wide/dense" and others
  int64_t batch_size = 0;  // the configured one, or the largest that fits; one sample where none does
  bool fits = false;
  std::string device;       // the fullest; "the host"
  int64_t bytes = 0;        // that it takes of that
  int64_t copy_bytes = 0;   // and of the host besides, for a copy that is saved meanwhile; 0 on GPUs
  double step_seconds = 0;  // estimated; 0 where it does not fit
  std::string refusal;      // why the model cannot be trained so at all; "" as a rule

  double samples_per_second() const {
    return step_seconds > 0 ? static_cast<double>(batch_size) / step_seconds : 0;
  }
};

/// Tries single, mirrored, sharded at its levels, pipelines with stages by auto_stages(), and, where branches
/// of the model need nothing of each other, placed by place_branches(); where the configured batch does not
/// fit, with the model's blocks recomputed, too, unless the model says itself what is. Those that fit come
/// first, by samples a second. Bytes are those of the plans that a run would make, which are made for the CPU
/// in the place of a GPU; nothing of that memory is taken. Seconds are by arithmetic: layers as
/// estimate_layer_seconds() has them; rings over the link, which a gather and a reduce-scatter go round once,
/// with (n - 1) / n of the bytes, and a sum twice, and which on GPUs go on while layers compute; pipelines as
/// simulate() runs them, branches as branches_seconds() has them. Throws UserError where the machine cannot
/// train this run at all.
std::vector<Candidate> what_fits(const RunConfig& config, const Machine& machine);

}  // namespace dtrain
