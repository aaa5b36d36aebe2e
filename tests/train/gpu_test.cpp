// Compares GPUs, alone and combined, with the CPU and with repeated runs.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "device/device.h"
#include "outcome.h"
#include "support/runs.h"

using namespace dtrain;
using namespace dtrain::test;

namespace {

constexpr auto kDense = R"(
seed: 3
model:
  inputs: {x: [24]}
  layers:
    - dense: {units: 32, activation: relu}
    - layer_normalization: {}
    - dropout: {rate: 0.3}
    - dense: {units: 16, activation: silu}
    - dense: {units: 5}
dataset:
  train: {synthetic: {samples: 70, target: {classes: 5}, seed: 4}}
strategy: single
train:
  epochs: 2
  batch_size: 32
  loss: {sparse_categorical_crossentropy: {from_logits: true}}
  optimizer: {adam: {learning_rate: 0.003}}
  metrics: [sparse_categorical_accuracy]
)";

constexpr auto kImages = R"(
seed: 3
model:
  inputs: {image: [9, 9, 3]}
  layers:
    - conv2d: {filters: 8, kernel_size: 3, strides: 2, padding: same, use_bias: false}
    - batch_normalization: {name: normal}
    - activation: {activation: relu, name: first}
    - conv2d: {filters: 8, kernel_size: 1, activation: tanh}
    - add: {inputs: [conv2d_1, first]}
    - max_pooling2d: {pool_size: 2}
    - depthwise_conv2d: {kernel_size: 3, padding: same}
    - global_average_pooling2d: {}
    - dense: {units: 3, activation: softmax}
dataset:
  train: {synthetic: {samples: 40, target: {classes: 3}, seed: 4}}
strategy: single
train:
  epochs: 2
  batch_size: 16
  loss: sparse_categorical_crossentropy
  optimizer: {sgd: {learning_rate: 0.05, momentum: 0.9, nesterov: true}}
)";

std::string on(const std::string& device) {
  return fmt::format("strategy={{single: {{device: '{}'}}}}", device);
}

std::string mirrored(const std::string& devices, int replicas) {
  return fmt::format("strategy={{mirrored: {{devices: [{}], replicas: {}, bucket_megabytes: 0.002}}}}",
                     devices, replicas);
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]) / std::abs(b[i]));
  return largest;
}

struct Ended {
  std::vector<double> losses;
  std::vector<float> arrays;
};

/// Starts from the newest checkpoint or, if there is none, from the beginning. Trains to the end of the run,
/// or until the recorder stops the run.
Ended run_in(const std::string& directory, const std::vector<std::string>& sets, int64_t stop_after = -1) {
  Recorder recorder(stop_after);
  RunDirectory run(directory);
  const auto newest = load_newest(run, [](const std::string&) {});
  Trainer trainer(plan_from(kDense, sets), run, recorder, recorder.requests);
  newest ? trainer.restore(*newest) : trainer.start();
  try {
    trainer.run();
  } catch (const Interrupted&) {
  }
  return {recorder.losses, arrays_of(trainer)};
}

/// Computes predictions of 500 samples after every epoch.
class Predictor final : public Recorder {
 public:
  void on_epoch(const Json&, int64_t) override { predictions_of(*trainer, 500); }
  Trainer* trainer = nullptr;
};

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("a GPU gives the CPU's loss curve") {
    CHECK(largest_difference(losses_of(kDense, {on("gpu:0")}), losses_of(kDense, {on("cpu:0")})) < 1e-5);
    CHECK(largest_difference(losses_of(kImages, {on("gpu:0")}), losses_of(kImages, {on("cpu:0")})) < 1e-4);
  }

  TEST_CASE("caches, accumulation and clipping do not change a GPU's losses") {
    const auto plain = losses_of(kDense, {on("gpu:0")});
    for (const std::string set : {"dataset.cache=device", "dataset.cache=memory", "train.accumulate=3"}) {
      CAPTURE(set);
      CHECK(largest_difference(losses_of(kDense, {on("gpu:0"), set}), plain) < 1e-5);
    }
    const std::string clip = "train.clip_norm=0.1";
    CHECK(largest_difference(losses_of(kDense, {on("gpu:0"), clip}), losses_of(kDense, {on("cpu:0"), clip})) <
          1e-5);
  }

  TEST_CASE("replicas on one GPU, on a GPU and the CPU, and on two GPUs give one device's loss curve") {
    std::vector<std::string> strategies{on("gpu:0"), mirrored("'gpu:0'", 3), mirrored("'gpu:0', 'cpu:0'", 3)};
    if (gpu_presence().count >= 2) {
      strategies.push_back(mirrored("'gpu:0', 'gpu:1'", 2));
      strategies.push_back(mirrored("'gpu:0', 'gpu:1'", 3));
    } else {
      MESSAGE("two GPUs: skipped, there is one");
    }
    // LAMB, adafactor and constraints need parameters that are not divided among replicas.
    for (const std::string set :
         {"train.clip_norm=0.1", "train.optimizer={lamb: {learning_rate: 0.003}}",
          "train.optimizer={adafactor: {learning_rate: 0.02}}",
          "model.layers.3.dense={units: 16, activation: silu, kernel_regularizer: {l2: 0.01}, "
          "kernel_constraint: {max_norm: {max_value: 0.8}}, bias_constraint: non_neg}"}) {
      CAPTURE(set);
      const auto single = losses_of(kDense, {on("cpu:0"), set});
      for (const std::string& strategy : strategies) {
        CAPTURE(strategy);
        CHECK(largest_difference(losses_of(kDense, {strategy, set}), single) < 1e-5);
      }
    }
  }

  TEST_CASE("replicas with synchronized batch normalization give one device's losses") {
    const std::string synchronized = "model.layers.1.batch_normalization.synchronized=true";
    std::vector<std::string> strategies{on("gpu:0"), mirrored("'gpu:0'", 3), mirrored("'gpu:0', 'cpu:0'", 2)};
    if (gpu_presence().count >= 2) {
      strategies.push_back(mirrored("'gpu:0', 'gpu:1'", 2));
      strategies.push_back(mirrored("'gpu:0', 'gpu:1'", 3));
    }
    // With the first setting, the last batch has one sample; the second setting uses microbatches.
    for (const std::string set : {"dataset.train.synthetic.samples=33", "train.accumulate=3"}) {
      const auto single = losses_of(kImages, {on("cpu:0"), synchronized, set});
      for (const std::string& strategy : strategies) {
        CAPTURE(strategy);
        CAPTURE(set);
        CHECK(largest_difference(losses_of(kImages, {strategy, synchronized, set}), single) < 1e-4);
      }
    }
  }

  TEST_CASE("one model over several devices gives one device's loss curve") {
    std::vector<std::string> strategies{
        "strategy={pipeline: {devices: ['gpu:0', 'cpu:0'], microbatches: 3}}",
        "strategy={pipeline: {devices: ['cpu:0', 'gpu:0'], microbatches: 3, schedule: gpipe}}",
        "strategy={pipeline: {devices: ['gpu:0', 'gpu:0', 'gpu:0'], microbatches: 4}}",
        "strategy={placed: {layers: {dense: 'gpu:0', dense_1: 'cpu:0', dense_2: 'gpu:0'}}}"};
    if (gpu_presence().count >= 2) {
      strategies.push_back("strategy={pipeline: {devices: ['gpu:0', 'gpu:1'], microbatches: 5}}");
      strategies.push_back(
          "strategy={pipeline: {devices: ['gpu:0', 'cpu:0', 'gpu:1', 'cpu:1'], replicas: 2, microbatches: "
          "2}}");
      for (const std::string level : {"optimizer", "gradients", "parameters"})
        strategies.push_back("strategy={sharded: {devices: ['gpu:0', 'gpu:1'], level: " + level + "}}");
    } else {
      MESSAGE("two GPUs: skipped, there is one");
    }
    // If the last batch has only one sample, one replica is empty, and all but one of the microbatches are
    // empty.
    for (const std::string set : {"train.clip_norm=0.1", "dataset.train.synthetic.samples=33"}) {
      CAPTURE(set);
      const auto single = losses_of(kDense, {on("cpu:0"), set});
      for (const std::string& strategy : strategies) {
        CAPTURE(strategy);
        CHECK(largest_difference(losses_of(kDense, {strategy, set}), single) < 1e-5);
      }
    }
  }

  // The validation batch is larger than the training microbatches only on one of the replicas. Therefore,
  // this replica reallocates memory after steps have been captured.
  TEST_CASE("two GPUs give the same losses if only one of them reallocates memory") {
    if (gpu_presence().count < 2) {
      MESSAGE("skipped, there is one GPU");
      return;
    }
    const std::vector<std::string> sets{
        "train.accumulate=32", "train.epochs=4",
        "dataset.validation={synthetic: {samples: 3, target: {classes: 5}, seed: 5}}"};
    const auto losses = [&](const std::string& strategy) {
      auto all = sets;
      all.push_back(strategy);
      return losses_of(kDense, all);
    };
    CHECK(largest_difference(losses(mirrored("'gpu:0', 'gpu:1'", 2)), losses(on("cpu:0"))) < 1e-5);
  }

  TEST_CASE("predictions between replayed steps may reallocate memory") {
    std::vector<std::string> strategies{on("gpu:0")};
    if (gpu_presence().count >= 2) strategies.push_back(mirrored("'gpu:0', 'gpu:1'", 2));
    const auto single = losses_of(kDense, {on("cpu:0"), "train.epochs=4"});
    for (const std::string& strategy : strategies) {
      CAPTURE(strategy);
      const TempDir directory;
      Predictor predictor;
      Trainer trainer(plan_from(kDense, {strategy, "train.epochs=4"}), RunDirectory(directory / "run"),
                      predictor, predictor.requests);
      predictor.trainer = &trainer;
      trainer.start();
      trainer.run();
      CHECK(largest_difference(predictor.losses, single) < 1e-5);
    }
  }

  TEST_CASE("other precisions stay close to float32 on one GPU and on two") {
    const auto single = losses_of(kDense, {on("cpu:0")});
    std::vector<std::string> strategies{on("gpu:0"), mirrored("'gpu:0'", 2)};
    if (gpu_presence().count >= 2) strategies.push_back(mirrored("'gpu:0', 'gpu:1'", 2));
    for (const std::string& strategy : strategies) {
      for (const std::string precision : {"tf32", "mixed_bfloat16", "mixed_float16"}) {
        CAPTURE(strategy);
        CAPTURE(precision);
        const auto losses = losses_of(kDense, {strategy, "train.precision=" + precision});
        CHECK(largest_difference(losses, single) < 2e-2);
        CHECK(losses != single);
      }
    }
  }

  TEST_CASE("a deterministic run that is stopped and resumed ends with the same bits") {
    for (const std::string precision : {"float32", "mixed_float16"}) {
      CAPTURE(precision);
      const std::vector<std::string> sets{on("gpu:0"), "train.deterministic=true",
                                          "train.precision=" + precision};
      const TempDir directory;
      const Ended whole = run_in(directory / "whole", sets);
      for (const int64_t step : {1, 3, 4}) {
        CAPTURE(step);
        const std::string run = directory / fmt::format("stopped-{}", step);
        run_in(run, sets, step);
        CHECK(run_in(run, sets).arrays == whole.arrays);
      }
    }
  }

  TEST_CASE("a run continues on another device type") {
    const TempDir directory;
    const auto single = losses_of(kDense, {on("cpu:0")});
    for (const auto& [first, to] : {std::pair{"gpu:0", "cpu:0"}, std::pair{"cpu:0", "gpu:0"}}) {
      const std::string from = first;
      CAPTURE(from);
      const std::string run = directory / fmt::format("from-{}", from);
      std::vector<double> losses = run_in(run, {on(from)}, 3).losses;
      const std::vector<double> rest = run_in(run, {on(to)}).losses;
      losses.insert(losses.end(), rest.begin(), rest.end());
      CHECK(largest_difference(losses, single) < 1e-5);
    }
  }

  TEST_CASE("a model that does not fit is an error that names the largest batch size") {
    // The model needs more than a terabyte in total, but no array is above the size limit.
    const std::string deep = R"(
model:
  inputs: {x: [24]}
  blocks: {deep: {layers: [dense: {units: 64}]}}
  layers: [deep: {repeat: 300}, dense: {units: 5}]
dataset: {train: {synthetic: {samples: 2000000000, target: {classes: 5}}}}
train: {epochs: 1, batch_size: 30000000, loss: {sparse_categorical_crossentropy: {from_logits: true}}, optimizer: sgd}
)";
    const TempDir directory;
    Recorder recorder;
    Trainer trainer(plan_from(deep, {on("gpu:0")}), RunDirectory(directory / "run"), recorder,
                    recorder.requests);
    CHECK_THROWS_WITH_AS(trainer.start(), doctest::Contains("the largest batch that fits is"), Error);
  }
}
