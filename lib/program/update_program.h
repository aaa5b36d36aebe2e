// The end of a training step as instructions, which sum the replicas' gradients and update the parameters.
#pragma once

#include <cstdint>
#include <vector>

#include "collective/collective.h"
#include "program/instruction.h"

namespace dtrain {

/// The ways in which the gradients of one slot are summed over the replicas.
enum class GradientReduction {
  none,            // there is one replica
  all_reduce,      // on the devices, in buckets; every replica gets the whole sum
  reduce_scatter,  // in one memory; every replica gets its share of the sum
  over_processes,  // in buckets, per process, then over processes; every replica gets its share of the sum
  in_backward,     // by instructions of the backward pass (sharded gradients)
};

/// Everything that determines the update of one slot in one replica. Ranges refer to the slot's layout.
struct UpdateRequest {
  int slot = 0;
  GradientReduction reduction = GradientReduction::none;
  // Whether the backward pass starts reductions for which the update must wait (only with in_backward).
  bool joins_backward = false;
  bool has_other_slots = false;  // whether the norm includes the gradients of other slots
  int64_t gradients = 0;         // number of floats with a gradient: trained parameters, then statistics
  int64_t trained = 0;           // number of floats of trained parameters
  Range share;                   // the range that this replica updates
  // Whether this replica adds the squares of its share to the norm. False if another replica adds the same
  // share.
  bool counts_share = true;
  int64_t bucket = 1;             // number of floats in each bucket, if gradients are summed in buckets
  bool needs_norm = false;        // whether the norm of the gradient is needed
  bool has_row_weights = false;   // whether the gradient is divided by the sum of the weights of all rows
  bool may_skip = false;          // whether a step updates nothing if all its row weights are 0
  bool needs_directions = false;  // whether the optimizer uses norms of whole parameters
  bool has_penalties = false;     // whether weights have regularizers
  // Whether a penalty reads whole parameters, including parts in other shares.
  bool penalties_read_all = false;
  bool has_constraints = false;      // whether weights have constraints
  bool updates_common_copy = false;  // whether the replicas update parts of one copy of the parameters
  bool shares_memory = false;        // whether other replicas read the updated share in this replica's memory
  bool gathers_parameters = false;   // whether the other replicas need copies of the updated share
};

/// The instructions of one slot in one replica that run after the gradients of the last microbatch were
/// computed.
struct UpdateProgram {
  // Instructions that sum the gradients. They are skipped if the backward pass has already run them
  // (PlanOptions::all_reduce_bucket).
  std::vector<Instruction> reduction;
  // Instructions that only enqueue work, so that a captured graph can contain them.
  std::vector<Instruction> on_device;
  std::vector<Instruction> on_host;  // instructions that wait for other slots and replicas on the host
};

/// Returns the update program of a slot in one replica.
UpdateProgram lower_update(const UpdateRequest& request);

/// Returns the ranges of [0, floats) that are all-reduced one by one. Each range has `bucket` floats; the
/// last range may be smaller.
std::vector<Range> reduction_buckets(int64_t floats, int64_t bucket);

}  // namespace dtrain
