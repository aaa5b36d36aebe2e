// Cuts a graph into pipeline stages.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace dtrain {

/// The properties of a node that matter for a cut. Nodes follow their inputs, and each stage is a contiguous
/// run of nodes.
struct StageNode {
  /// Whether the node is a model input, which has no layer and no cost and is on the stage of its first
  /// reader.
  bool is_input = false;
  bool stays = false;      // whether the node must be on the stage of the previous node
  int parameters_of = -1;  // the node whose parameters this node shares; -1: none
  // Bytes of parameters, gradients and optimizer state; counted once per stage that uses them.
  int64_t parameter_bytes = 0;
  int64_t activation_bytes = 0;  // bytes that are kept from forward to backward, per microbatch
  /// For the last node of a recomputed segment: bytes that the segment holds while backward is in it.
  /// Segments are recomputed one after the other.
  int64_t recomputed_bytes = 0;
};

/// An output of a node. Each other stage that reads it has a copy, and sends the gradient back.
struct StageValue {
  int node = 0;
  int64_t bytes = 0;         // bytes per microbatch
  std::vector<int> readers;  // node indices, in ascending order
};

/// The device of a stage.
struct StageDevice {
  std::vector<double> seconds;   // seconds of forward and backward of a microbatch, for each node
  std::optional<int64_t> bytes;  // memory; nullopt: unlimited
  int in_flight = 1;             // maximum number of microbatches whose activations the stage keeps
};

struct StageProblem {
  std::vector<StageNode> nodes;
  std::vector<StageValue> values;
  std::vector<StageDevice> devices;  // indexed by stage
  double seconds_per_byte = 0;  // seconds to copy a byte between stages; counted for the stage that reads
};

/// Time per microbatch, and memory, of a stage.
struct StageLoad {
  double seconds = 0;
  int64_t bytes = 0;
  int64_t recomputed_bytes = 0;  // bytes of the largest recomputed segment, a part of `bytes`
};

struct StageCut {
  enum class Outcome {
    found,
    too_few_layers,     // possible_starts is less than the number of stages
    too_little_memory,  // no cut fits; `stages` is the cut whose largest shortage of a stage is smallest
  };
  Outcome outcome = Outcome::found;
  std::vector<int> stages;       // stage of each node; empty if there are too few layers
  std::vector<StageLoad> loads;  // indexed by stage
  int possible_starts = 0;  // number of layers that may begin a stage, which is the maximum number of stages
};

/// Returns the load of each stage. `stages`: the stage of each node; stages need not be contiguous.
std::vector<StageLoad> stage_loads(const StageProblem& problem, std::span<const int> stages);

/// Among all cuts in which each stage has at least one layer and fits into its device's memory, returns the
/// one whose slowest stage is fastest; among equal ones, the one with the smallest sum of the stages' squared
/// seconds. Finds the exact optimum by dynamic programming over the stages and their last nodes, in a time
/// proportional to stages * nodes^2.
StageCut choose_stages(const StageProblem& problem);

}  // namespace dtrain
