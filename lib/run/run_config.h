// The checked configuration of a whole run. No data is read and no memory is allocated.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/registry.h"
#include "data/dataset_spec.h"
#include "distribute/strategy.h"
#include "nn/graph.h"
#include "nn/head.h"
#include "nn/loss.h"
#include "nn/threshold.h"
#include "optim/optimizer.h"
#include "run/callback.h"
#include "run/interval.h"
#include "run/parameter_groups.h"

namespace dtrain {

/// The number format in which layers compute. With tf32, GPUs compute matrix products with 10 bits of
/// mantissa. With mixed_bfloat16 and mixed_float16, activations and matrix products have 16 bits, but
/// parameters are stored and updated in float32.
enum class Precision { float32, tf32, mixed_bfloat16, mixed_float16 };
template <>
inline const EnumNames<Precision> names_of<Precision> = {{Precision::float32, "float32"},
                                                         {Precision::tf32, "tf32"},
                                                         {Precision::mixed_bfloat16, "mixed_bfloat16"},
                                                         {Precision::mixed_float16, "mixed_float16"}};

struct TrainOptions {
  int64_t epochs = 1;
  int64_t batch_size = 32;  // samples per step, over all replicas
  ConfigNode loss;  // one loss for all outputs, or a mapping from output names; parsed into RunConfig::heads
  Configured<Optimizer> optimizer;
  // One list for all outputs, or a mapping from output names; parsed into RunConfig::heads. weighted_metrics
  // use row weights.
  ConfigNode metrics, weighted_metrics;
  std::optional<ThresholdGoal> threshold;  // threshold for outputs with two classes
  ConfigNode
      class_weight;  // `balanced`, or a mapping from classes to weights; parsed into RunConfig::class_weights
  Precision precision = Precision::float32;
  bool deterministic = false;        // bit-identical results in every run, including on GPUs
  std::optional<double> clip_norm;   // maximum L2 norm of the whole gradient
  std::optional<double> clip_value;  // maximum absolute value of each gradient element
  int64_t accumulate = 1;            // number of microbatches that each replica processes per step
  std::optional<TimeSpan> max_time;
  TimeSpan step_timeout{{10, Interval::Unit::minute}};  // maximum time that GPUs may stall in a step
  TimeSpan peer_timeout{{30, Interval::Unit::second}};  // maximum time without a message from a process
  std::vector<Configured<Callback>> callbacks;
  std::vector<ParameterGroup> groups;
};

struct BestOptions {
  std::string monitor = "val_loss";
  MonitorMode mode = MonitorMode::automatic;
};

struct CheckpointOptions {
  Interval every;
  int64_t keep = 3;
  std::optional<BestOptions> best;
};

/// Row weights by the class of the target, for training.
struct ClassWeights {
  bool balanced = false;  // all classes have the same total weight in the training split
  // Each class, by name or index, and its weight; other classes have the weight 1.
  std::vector<std::pair<std::string, double>> weights = {};
  Mark mark;
};

struct RunConfig {
  std::string name;
  int64_t seed = 0;
  Graph graph;
  DatasetSpec dataset;
  Configured<Strategy> strategy;
  TrainOptions train;
  CheckpointOptions checkpoint;
  std::vector<Head> heads;               // one per output; no losses if the configuration has no `train`
  std::vector<std::string> total_names;  // for each head: "loss" or "<output>_loss", then its metrics' names
  std::optional<ClassWeights> class_weights;
  ConfigNode resolved;                // written to config.yaml; parses to an equal run
  ConfigNode written;                 // the configuration as read from the file
  std::vector<std::string> warnings;  // warnings for the user: "file:line:column: warning: ..."

  /// Returns the source location of the value at these keys, or else of the innermost enclosing part that
  /// exists.
  Mark place(std::initializer_list<std::string_view> path) const { return place_in(written, path); }

  /// Returns whether the configuration defines the training. An imported model may lack `train`.
  bool has_training() const { return static_cast<bool>(train.optimizer); }
  /// The optimizer's slots; empty without an optimizer.
  std::vector<Optimizer::Slot> slots() const;
  bool has_dataset() const { return !dataset.resolved.is_null(); }
  /// Throws UserError unless the configuration has `train`. `path`: the checkpoint.
  void require_train(const std::string& path) const;
  /// Throws UserError unless the configuration has `dataset`. `path`: the checkpoint.
  void require_dataset(const std::string& path) const;

  /// The targets that the data set's readers must provide.
  std::vector<TensorSpec> targets() const;
};

/// Returns the number format in which GPUs compute in a run with these options, and whether they compute
/// deterministically.
GpuMath gpu_math(const TrainOptions& train);

/// Returns whether a run with `epochs_left` more epochs saves checkpoints before its end. Such a run needs
/// host memory for a copy of the parameters and the optimizer state: the copy is written to disk in the
/// background, so that training does not wait for the disk.
bool saves_on_the_way(const RunConfig& config, int64_t epochs_left, int64_t steps_per_epoch);

}  // namespace dtrain
