// Cuts a graph into pipeline stages.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace dtrain {

/// The properties of a node on which a cut depends. Nodes come after their inputs, and each stage is a
/// contiguous sequence of nodes.
struct StageNode {
  /// Whether the node is a model input. A model input has no layer and no cost, and belongs to the stage of
  /// its first reader.
  bool is_input = false;
  bool stays = false;      // whether the node must be on the same stage as the previous node
  int parameters_of = -1;  // the node whose parameters this node uses; -1 if the node has its own parameters
  // Bytes of the parameters with their gradients and optimizer state. They are counted once for each stage
  // that uses the parameters.
  int64_t parameter_bytes = 0;
  int64_t activation_bytes = 0;  // bytes that each microbatch keeps from forward to backward
  /// For the last node of a recomputed segment: bytes that the segment needs during its backward pass.
  /// Segments are recomputed one after the other, so only the largest one counts.
  int64_t recomputed_bytes = 0;
};

/// An output of a node. Every other stage that reads the output gets a copy of it, and sends the gradient
/// back.
struct StageValue {
  int node = 0;
  int64_t bytes = 0;         // bytes per microbatch
  std::vector<int> readers;  // node indices, in ascending order
};

/// The device of a stage.
struct StageDevice {
  std::vector<double> seconds;  // for each node, the time of forward and backward of a microbatch, in seconds
  std::optional<int64_t> bytes;  // memory; nullopt: unlimited
  int in_flight = 1;             // maximum number of microbatches whose activations the stage keeps
};

struct StageProblem {
  std::vector<StageNode> nodes;
  std::vector<StageValue> values;
  std::vector<StageDevice> devices;  // indexed by stage
  // Time to copy a byte between stages, in seconds; counted for the stage that reads the value.
  double seconds_per_byte = 0;
};

/// The load of one stage: its time per microbatch and its memory.
struct StageLoad {
  double seconds = 0;
  int64_t bytes = 0;
  int64_t recomputed_bytes = 0;  // bytes of the largest recomputed segment; included in `bytes`
};

struct StageCut {
  enum class Outcome {
    found,
    too_few_layers,  // the number of stages is larger than possible_starts
    // No cut fits into memory. `stages` is the cut that minimizes the largest shortage of memory of any
    // stage.
    too_little_memory,
  };
  Outcome outcome = Outcome::found;
  std::vector<int> stages;       // stage of each node; empty if there are too few layers
  std::vector<StageLoad> loads;  // indexed by stage
  // Number of layers with which a stage may begin. It is an upper limit for the number of stages.
  int possible_starts = 0;
};

/// Returns the load of each stage. `stages`: the stage of each node. The nodes of a stage need not be
/// contiguous.
std::vector<StageLoad> stage_loads(const StageProblem& problem, std::span<const int> stages);

/// Returns the cut that minimizes the time of the slowest stage, among all cuts in which each stage has at
/// least one layer and fits into the memory of its device. If several cuts are equally good, returns the one
/// with the smallest sum of the squared times of its stages. The result is the exact optimum. It is found by
/// dynamic programming over the stages and their last nodes, in a time proportional to stages * nodes^2.
StageCut choose_stages(const StageProblem& problem);

}  // namespace dtrain
