// A whole run as configured: everything checked, nothing yet read or allocated.
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
#include "nn/loss.h"
#include "nn/plan.h"
#include "nn/threshold.h"
#include "optim/optimizer.h"
#include "run/callback.h"
#include "run/interval.h"
#include "run/parameter_groups.h"

namespace dtrain {

/// tf32: products on GPUs with 10 bits of mantissa. mixed: activations and products in 16 bits, parameters
/// and their update in float32.
enum class Precision { float32, tf32, mixed_bfloat16, mixed_float16 };
template <>
inline const EnumNames<Precision> names_of<Precision> = {{Precision::float32, "float32"},
                                                         {Precision::tf32, "tf32"},
                                                         {Precision::mixed_bfloat16, "mixed_bfloat16"},
                                                         {Precision::mixed_float16, "mixed_float16"}};

struct TrainOptions {
  int64_t epochs = 1;
  int64_t batch_size = 32;  // samples of a step, over all replicas
  ConfigNode loss;  // one kind for every output, or a mapping from output names; RunConfig::heads has them
  Configured<Optimizer> optimizer;
  // One list for every output, or a mapping from output names; RunConfig::heads has them. Those of
  // weighted_metrics count rows by their weights.
  ConfigNode metrics, weighted_metrics;
  std::optional<ThresholdGoal> threshold;  // of outputs of two classes
  ConfigNode class_weight;                 // `balanced`, or a mapping from classes; RunConfig::class_weights
  Precision precision = Precision::float32;
  bool deterministic = false;        // the run gives the same bits every time, on GPUs too
  std::optional<double> clip_norm;   // the greatest L2 norm of the whole gradient
  std::optional<double> clip_value;  // the greatest size of an element of it
  int64_t accumulate = 1;            // microbatches that each share is worked through in
  std::optional<TimeSpan> max_time;
  TimeSpan step_timeout{{10, Interval::Unit::minute}};  // of GPUs that stall
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

/// What rows count for by the class of their target, in training.
struct ClassWeights {
  bool balanced = false;  // each class as all others, by the training split
  std::vector<std::pair<std::string, double>> weights = {};  // by name or number; 1 for others
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
  std::vector<Head> heads;               // without losses if the configuration has no `train`
  std::vector<std::string> total_names;  // of each head: "loss" or "<output>_loss", then its metrics by name
  std::optional<ClassWeights> class_weights;
  ConfigNode resolved;                // what config.yaml says; parses back to an equal run
  ConfigNode written;                 // the configuration as it was read
  std::vector<std::string> warnings;  // for whoever wrote it: "file:line:column: warning: ..."

  /// Where the value under these keys is written; where it is not, the innermost part around it that is.
  Mark place(std::initializer_list<std::string_view> path) const { return place_in(written, path); }

  /// Whether the configuration says how the model is trained. An imported model may lack `train`.
  bool has_training() const { return static_cast<bool>(train.optimizer); }
  /// The slots of the optimizer; none without an optimizer.
  std::vector<Optimizer::Slot> slots() const;
  bool has_dataset() const { return !dataset.resolved.is_null(); }
  /// Throws UserError unless the configuration has `train`. `path` is the checkpoint's.
  void require_train(const std::string& path) const;
  /// The same for `dataset`.
  void require_dataset(const std::string& path) const;

  /// What the readers of the data set must give as targets.
  std::vector<TensorSpec> targets() const;
};

/// How GPUs compute in the run.
GpuMath gpu_math(const TrainOptions& train);

/// Whether a run that has so many epochs left saves before its end, too. It then needs room in the host's
/// memory for a copy of parameters and optimizer slots: training waits for that copy, not for the disk.
bool saves_on_the_way(const RunConfig& config, int64_t epochs_left, int64_t steps_per_epoch);

}  // namespace dtrain
