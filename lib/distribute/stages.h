// Where a graph is cut into the stages of a pipeline.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace dtrain {

/// What a cut must know of a node. Nodes come after those that they read; stages are runs of them.
struct StageNode {
  bool is_input = false;         // of the model: no layer, it costs nothing, and goes with its first reader
  bool stays = false;            // on the stage of the node before
  int parameters_of = -1;        // the node whose parameters are its, too; -1: its own
  int64_t parameter_bytes = 0;   // with gradients and slots, held once by each stage that has them
  int64_t activation_bytes = 0;  // kept from forward to backward, of a microbatch
  /// Of the last node of a recomputed segment: what the segment holds while backward is in it. Segments are
  /// computed again one after the other.
  int64_t recomputed_bytes = 0;
};

/// What a node computes for others. A stage that reads another one's has a copy, and gives the gradient back.
struct StageValue {
  int node = 0;
  int64_t bytes = 0;         // of a microbatch
  std::vector<int> readers;  // nodes, in ascending order
};

/// A stage's device.
struct StageDevice {
  std::vector<double> seconds;   // of each node here: forward and backward of a microbatch
  std::optional<int64_t> bytes;  // nothing: as many as are asked for
  int in_flight = 1;             // microbatches whose activations the stage keeps
};

struct StageProblem {
  std::vector<StageNode> nodes;
  std::vector<StageValue> values;
  std::vector<StageDevice> devices;  // by stage
  double seconds_per_byte = 0;       // of a copy between stages; the stage that reads spends them
};

/// What a stage has to do for a microbatch, and to hold.
struct StageLoad {
  double seconds = 0;
  int64_t bytes = 0;
  int64_t recomputed_bytes = 0;  // of these, the largest segment's
};

struct StageCut {
  enum class Outcome {
    found,
    too_few_layers,     // possible_starts is less than there are stages
    too_little_memory,  // of every cut; `stages` is the one whose largest lack of bytes is the smallest
  };
  Outcome outcome = Outcome::found;
  std::vector<int> stages;       // of each node; empty where there are too few layers
  std::vector<StageLoad> loads;  // by stage
  int possible_starts = 0;       // layers that a stage may begin with: the most stages that there can be
};

/// The loads of the problem's stages where `stages` says the stage of each node, in any order.
std::vector<StageLoad> stage_loads(const StageProblem& problem, std::span<const int> stages);

/// Of all cuts that give each stage at least one layer and fit every device's memory, the one whose slowest
/// stage is the fastest; of several such, the one whose stages differ least (by the sum of their squared
/// seconds). By dynamic programming over the stages and the nodes that end them, which is exact; the time
/// grows by the nodes squared, times the stages.
StageCut choose_stages(const StageProblem& problem);

}  // namespace dtrain
