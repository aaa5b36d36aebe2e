// Runs a training over several processes, which are threads here, and compares their results.
#pragma once

#include <algorithm>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "outcome.h"
#include "support/processes.h"

namespace dtrain::test {

/// The configuration of a run. The last batch of an epoch has two samples, so that some of four replicas get
/// no sample.
inline constexpr auto kRun = R"(
seed: 3
model:
  inputs: {x: [24]}
  layers:
    - dense: {units: 32, activation: tanh, name: first}
    - layer_normalization: {}
    - dropout: {rate: 0.3}
    - batch_normalization: {}
    - dense: {units: 16, activation: silu, name: second}
    - dense: {units: 5}
dataset:
  train: {synthetic: {samples: 138, target: {classes: 5}, seed: 4}}
  validation: {synthetic: {samples: 35, target: {classes: 5}, seed: 5}}
train:
  epochs: 3
  batch_size: 17
  loss: {sparse_categorical_crossentropy: {from_logits: true}}
  optimizer: {adam: {learning_rate: 0.003}}
  metrics: [sparse_categorical_accuracy, f1_score, confusion_matrix]
)";

/// The configuration of a run with masked steps.
inline constexpr auto kMasked = R"(
seed: 3
model:
  inputs: {x: {shape: [6], dtype: int32}}
  layers:
    - embedding: {input_dim: 9, output_dim: 4, mask_zero: true}
    - lstm: {units: 5, return_sequences: true}
    - dense: {units: 3}
dataset:
  train: {synthetic: {samples: 30, input: {low: 0, high: 9}, target: {classes: 3}, seed: 4}}
train:
  epochs: 3
  batch_size: 8
  loss: {sparse_categorical_crossentropy: {from_logits: true}}
  optimizer: {adam: {learning_rate: 0.05}}
)";

/// The configuration of a run with two outputs. One output has the mask of the tokens; the other output has
/// no mask.
inline constexpr auto kTagger = R"(
seed: 3
model:
  inputs: {x: {shape: [6], dtype: int32}}
  layers:
    - embedding: {input_dim: 9, output_dim: 4, mask_zero: true}
    - lstm: {units: 5, return_sequences: true, activity_regularizer: {l2: 0.01}}
    - dense: {name: tags, units: 3}
    - global_average_pooling1d: {name: mean, inputs: lstm}
    - dense: {name: kind, units: 2}
  outputs: [tags, kind]
dataset:
  train: {synthetic: {samples: 30, input: {low: 0, high: 3}, targets: {tags: {classes: 3}, kind: {classes: 2}}, seed: 4}}
train:
  epochs: 3
  batch_size: 8
  loss:
    tags: {sparse_categorical_crossentropy: {from_logits: true}}
    kind: {sparse_categorical_crossentropy: {from_logits: true}}
  optimizer: {adam: {learning_rate: 0.05}}
)";

using Sets = std::vector<std::string>;

/// The state of a process at the end of a run, and its records of the run.
struct Result {
  std::vector<double> losses;
  std::vector<float> arrays;         // parameters and optimizer slots
  std::vector<std::string> history;  // lines of metrics.jsonl without times, and tables
  bool operator==(const Result&) const = default;
};

/// Strategies by the names that strategy_of() knows: mirrored, the levels of sharded, and pipelines of two
/// and of three stages. The second of three stages has no parameters.
inline const std::vector<std::string> kLevels{"optimizer", "gradients", "parameters"};
inline const std::vector<std::string> kPipelines{"two stages", "three stages"};

/// Pipelines whose stages are divided among the processes: one replica of four stages, and two replicas of
/// three stages. These are the replicas of the whole run, not of each process.
inline const std::vector<std::string> kDivided{"divided stages", "divided replicas"};

inline bool is_in(const std::vector<std::string>& list, const std::string& strategy) {
  return std::find(list.begin(), list.end(), strategy) != list.end();
}

inline bool is_level(const std::string& strategy) {
  return is_in(kLevels, strategy);
}

/// Returns true if each process stores only a part of the state.
inline bool is_spread(const std::string& strategy) {
  return is_level(strategy) || is_in(kDivided, strategy);
}

inline std::string devices_text(int count) {
  std::string devices = "cpu:0";
  for (int i = 1; i < count; ++i) devices += fmt::format(", cpu:{}", i);
  return devices;
}

/// Returns a pipeline on CPUs as an override of a configuration. `starts` lists the first layers of all
/// stages but the first.
inline std::string pipeline_of(int replicas, int stages, const std::string& starts, int microbatches,
                               const std::string& more = "") {
  return fmt::format(
      "strategy={{pipeline: {{devices: [{}], stages: [{}], microbatches: {}, replicas: {}{}}}}}",
      devices_text(replicas * stages), starts, microbatches, replicas, more);
}

/// Returns a pipeline whose stages are divided among the processes.
inline std::string divided(int replicas, int stages, const std::string& starts, int microbatches) {
  return pipeline_of(replicas, stages, starts, microbatches, ", across: processes");
}

/// Returns the strategy of this name as an override of a configuration. With `mirrored`, gradients are summed
/// in two buckets: the first is divided among the processes, and the second is so short that it is sent
/// whole.
inline std::string strategy_of(const std::string& name, int replicas) {
  if (name == "mirrored")
    return fmt::format("strategy={{mirrored: {{devices: [cpu:0], replicas: {}, bucket_megabytes: 0.005}}}}",
                       replicas);
  if (is_level(name))
    return fmt::format("strategy={{sharded: {{devices: [{}], level: {}}}}}", devices_text(replicas), name);
  if (name == "divided stages") return divided(1, 4, "layer_normalization, batch_normalization, second", 3);
  if (name == "divided replicas") return divided(2, 3, "dropout, second", 2);
  return name == "two stages" ? pipeline_of(replicas, 2, "second", 2)
                              : pipeline_of(replicas, 3, "dropout, batch_normalization", 3);
}

/// Returns the configuration of a process with this number of replicas.
inline RunConfig config_of(const std::string& yaml, Sets sets, int replicas,
                           const std::string& strategy = "mirrored") {
  sets.insert(sets.begin(), strategy_of(strategy, replicas));
  return config_from(yaml, sets);
}

/// Plans a run whose replicas all compute on one core, because results may depend on the number of cores.
inline RunPlan plan_on_one_core(RunConfig config, World& world) {
  RunPlan plan = plan_training(std::move(config), world);
  plan.cores.resize(1);
  return plan;
}

/// Runs an initialized trainer to its end.
inline Result result_of(Trainer& trainer, Recorder& recorder) {
  trainer.run();
  Result result{recorder.losses, {}, {}};
  append_arrays(trainer, result.arrays, result.arrays);
  std::istringstream lines(trainer.state().history.text());
  for (std::string line; std::getline(lines, line);) {
    const Json record = Json::parse(line);
    std::string text;
    for (const auto& [key, value] : record.entries())
      if (key != "seconds" && key != "samples_per_second") text += key + "=" + value.dump() + " ";
    result.history.push_back(text);
  }
  if (const TableLine& tables = trainer.state().tables) result.history.push_back(*tables);
  return result;
}

/// Starts a new run on several processes, and returns the result of each process. `counts` has the number of
/// replicas of each process. Checks that no message is left in the queues.
inline std::vector<Result> results_of(const std::string& yaml, const Sets& sets,
                                      const std::vector<int>& counts,
                                      const std::string& strategy = "mirrored") {
  const TempDir directory;
  std::vector<Result> results(counts.size());
  std::vector<RunConfig> configs;
  for (const int count : counts) configs.push_back(config_of(yaml, sets, count, strategy));
  Processes processes(static_cast<int>(counts.size()));
  processes.run([&](World& world) {
    const auto rank = static_cast<size_t>(world.rank());
    Recorder recorder;
    Trainer trainer(plan_on_one_core(configs[rank], world), RunDirectory(directory / "run"), recorder,
                    recorder.requests);
    trainer.start();
    results[rank] = result_of(trainer, recorder);
  });
  CHECK(processes.queues().is_empty());
  return results;
}

/// Checks that 4 replicas in one process and each of the divisions give the same results. A division lists
/// the number of replicas of each process.
inline void check_divisions(
    const std::string& yaml, const Sets& sets = {},
    const std::vector<std::vector<int>>& divisions = {{2, 2}, {1, 1, 1, 1}, {3, 1}, {1, 2, 1}},
    const std::string& strategy = "mirrored") {
  const Result whole = results_of(yaml, sets, {4}, strategy)[0];
  CHECK(whole.losses.size() >= 12);
  for (const std::vector<int>& counts : divisions) {
    CAPTURE(counts.size());
    CAPTURE(counts[0]);
    const std::vector<Result> results = results_of(yaml, sets, counts, strategy);
    for (const Result& result : results) {
      CHECK(result.losses == whole.losses);
      const bool sends_arrays = is_spread(strategy) && &result != results.data();
      CHECK(result.arrays == (sends_arrays ? std::vector<float>{} : whole.arrays));
      CHECK(result.history == whole.history);
    }
  }
}

}  // namespace dtrain::test
