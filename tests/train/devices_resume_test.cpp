// Tests runs that are saved with one strategy and resumed with another strategy, for each pair of strategies.
#include <filesystem>
#include <regex>

#include <fmt/format.h>

#include "outcome.h"
#include "train/evaluation/evaluation.h"

using namespace dtrain;
using namespace dtrain::test;

namespace {

// An epoch has five steps; the last step has 9 samples. When the run is resumed, optimizer slots, averaged
// weights, random numbers, the state of a schedule, and the sums of an unfinished epoch must be restored.
constexpr auto kRun = R"(
seed: 5
model:
  inputs: {x: [6]}
  layers:
    - dense: {units: 12, activation: tanh, name: first}
    - dropout: {rate: 0.25}
    - layer_normalization: {name: normal}
    - dense: {units: 12, activation: tanh, name: second}
    - dense: {name: third, shared_with: second}
    - dense: {units: 4, name: head}
dataset:
  train: {synthetic: {samples: 73, target: {classes: 4}, seed: 1}}
  validation: {synthetic: {samples: 30, target: {classes: 4}, seed: 2}}
strategy: single
train:
  epochs: 4
  batch_size: 16
  loss: {sparse_categorical_crossentropy: {from_logits: true}}
  optimizer: {adam: {learning_rate: {reduce_on_plateau: {initial: 0.005, patience: 1, factor: 0.5, min_delta: 0.5}}}}
  metrics: [sparse_categorical_accuracy]
  callbacks: [{ema: {decay: 0.9}}]
checkpoint: {every: 1000 steps, best: {monitor: val_loss}}
)";

const std::vector<std::string> kStrategies{
    "strategy=single",
    "strategy={mirrored: {devices: [cpu:0, cpu:1], replicas: 3}}",
    "strategy={placed: {layers: {first: 'cpu:1', normal: 'cpu:0', second: 'cpu:2', head: 'cpu:1'}}}",
    "strategy={pipeline: {devices: [cpu:0, cpu:1, cpu:2], stages: [normal, head], microbatches: 3}}",
    R"(strategy={pipeline: {devices: [cpu:0, cpu:1, cpu:2, cpu:3], stages: [third], microbatches: 2,
                 schedule: gpipe, replicas: 2}})",
};

/// The results of a checkpoint that is loaded under a strategy, before any further step.
struct Seen {
  std::vector<float> predictions;
  double loss = 0;
};

Seen file_type(const std::string& run, const std::string& strategy) {
  SavedRun saved = load_saved_run(run, {strategy}, [](const std::string&) {});
  Recorder recorder;
  Trainer trainer(plan_of(std::move(saved.config)), *saved.directory, recorder, recorder.requests);
  trainer.restore(saved.checkpoint);
  const auto loader = open_loader(trainer.config(), *trainer.config().dataset.validation, false, false);
  return {predictions_of(trainer),
          evaluate_split(trainer.config(), trainer.engine(), *loader, nullptr)->loss()};
}

/// Resumes a stopped run in a copy of its directory.
Outcome go_on(const std::string& run, const std::string& strategy) {
  const TempDir directory;
  std::filesystem::copy(run, directory / "run", std::filesystem::copy_options::recursive);
  SavedRun saved = load_saved_run(directory / "run", {strategy}, [](const std::string&) {});
  Recorder recorder;
  Trainer trainer(plan_of(std::move(saved.config)), *saved.directory, recorder, recorder.requests);
  trainer.restore(saved.checkpoint);
  return outcome_of(trainer, recorder);
}

}  // namespace

TEST_CASE(
    "a run saved under one strategy continues under any other, and under the same one with the same bits") {
  std::vector<Outcome> whole;
  for (const std::string& strategy : kStrategies) whole.push_back(outcome_of(kRun, {strategy}));
  for (const int64_t stop : {7, 10})  // within an epoch, and at its end
    for (size_t i = 0; i < kStrategies.size(); ++i) {
      CAPTURE(stop);
      CAPTURE(kStrategies[i]);
      const TempDir directory;
      const RunDirectory run(directory / "run");
      Recorder recorder(stop);
      {
        Trainer trainer(plan_from(kRun, {kStrategies[i]}), run, recorder, recorder.requests);
        trainer.start();
        CHECK_THROWS_AS(trainer.run(), Interrupted);
      }
      const Seen expected = file_type(run.path(), kStrategies[0]);
      for (size_t j = 0; j < kStrategies.size(); ++j) {
        CAPTURE(kStrategies[j]);
        const Seen seen = file_type(run.path(), kStrategies[j]);
        CHECK(largest_difference_of(seen.predictions, expected.predictions) < 1e-5);
        CHECK(seen.loss == doctest::Approx(expected.loss).epsilon(1e-6));

        Outcome resumed = go_on(run.path(), kStrategies[j]);
        resumed.losses.insert(resumed.losses.begin(), recorder.losses.begin(), recorder.losses.end());
        check_close(resumed, whole[0]);
        if (i == j) CHECK(resumed == whole[i]);
      }
    }
}

TEST_CASE("optimizer state of other shapes than the weights continues under any strategy") {
  const std::string optimizer = "train.optimizer={adafactor: {learning_rate: 0.01}}";
  const std::vector<std::string> strategies{
      kStrategies[0], kStrategies[1], kStrategies[3],
      "strategy={sharded: {devices: [cpu:0, cpu:1, cpu:2], level: parameters}}"};
  std::vector<Outcome> whole;
  for (const std::string& strategy : strategies) whole.push_back(outcome_of(kRun, {strategy, optimizer}));
  for (size_t i = 0; i < strategies.size(); ++i) {
    CAPTURE(strategies[i]);
    const TempDir directory;
    const RunDirectory run(directory / "run");
    Recorder recorder(7);
    {
      Trainer trainer(plan_from(kRun, {strategies[i], optimizer}), run, recorder, recorder.requests);
      trainer.start();
      CHECK_THROWS_AS(trainer.run(), Interrupted);
    }
    for (size_t j = 0; j < strategies.size(); ++j) {
      CAPTURE(strategies[j]);
      Outcome resumed = go_on(run.path(), strategies[j]);
      resumed.losses.insert(resumed.losses.begin(), recorder.losses.begin(), recorder.losses.end());
      check_close(resumed, whole[0]);
      if (i == j) CHECK(resumed == whole[i]);
    }
  }
}

TEST_CASE("an embedding that a dense layer shares is one array, whatever strategy trains and resumes it") {
  constexpr auto kTied = R"(
seed: 5
model:
  inputs: {x: {shape: [6], dtype: int32}}
  layers:
    - embedding: {name: token, input_dim: 8, output_dim: 5}
    - layer_normalization: {name: normal}
    - dense: {name: mixed, units: 5, activation: tanh}
    - dense: {name: scores, shared_with: token, activation: tanh}
    - flatten: {name: flat}
    - dense: {name: head, units: 3}
dataset:
  train: {synthetic: {samples: 73, input: {low: 0, high: 8}, target: {classes: 3}, seed: 1}}
strategy: single
train:
  epochs: 3
  batch_size: 16
  loss: {sparse_categorical_crossentropy: {from_logits: true}}
  optimizer: {adam: {learning_rate: 0.005}}
checkpoint: {every: 1000 steps}
)";
  const Outcome single = outcome_of(kTied);
  for (const std::string strategy :
       {"strategy={mirrored: {devices: [cpu:0, cpu:1], replicas: 3}}",
        "strategy={sharded: {devices: [cpu:0, cpu:1], level: parameters}}",
        "strategy={sharded: {devices: [cpu:0, cpu:1], level: gradients}}",
        "strategy={placed: {layers: {token: 'cpu:1', normal: 'cpu:0', scores: 'cpu:2', head: 'cpu:1'}}}",
        "strategy={pipeline: {devices: [cpu:0, cpu:1, cpu:2], stages: [normal, scores], microbatches: 3}}"}) {
    CAPTURE(strategy);
    const Outcome whole = outcome_of(kTied, {strategy});
    check_close(whole, single);
    const TempDir directory;
    const RunDirectory run(directory / "run");
    Recorder recorder(7);
    {
      Trainer trainer(plan_from(kTied, {strategy}), run, recorder, recorder.requests);
      trainer.start();
      CHECK_THROWS_AS(trainer.run(), Interrupted);
    }
    const auto saved = load_newest(run, [](const std::string&) {});
    REQUIRE(saved);
    std::string weights;
    for (const LayerWeights& layer : saved->content().layers)
      for (const ArrayRef& weight : layer.weights)
        if (weight.shape == Shape{8, 5} || weight.shape == Shape{5, 8}) weights += weight.name + " ";
    CHECK(weights == "embeddings ");
    Outcome resumed = go_on(run.path(), strategy);
    resumed.losses.insert(resumed.losses.begin(), recorder.losses.begin(), recorder.losses.end());
    CHECK(resumed == whole);
  }
}

TEST_CASE("a NaN loss on several devices ends the run and overwrites no good checkpoint") {
  // In this model without bounded activations, the product of three weights of this size overflows on every
  // processor.
  const std::string linear = std::regex_replace(kRun, std::regex("activation: tanh, "), "");
  for (const std::string& strategy : kStrategies) {
    CAPTURE(strategy);
    const TempDir directory;
    const RunDirectory run(directory / "run");
    Recorder recorder;
    Trainer trainer(plan_from(linear, {strategy, "train.optimizer={sgd: {learning_rate: 1e30}}",
                                       "train.callbacks=[terminate_on_nan]", "checkpoint.every=1 step"}),
                    run, recorder, recorder.requests);
    trainer.start();
    CHECK_THROWS_WITH_AS(trainer.run(), doctest::Contains("at step"), Error);
    const auto newest = load_newest(run, [](const std::string&) {});
    REQUIRE(newest);
    for (const LayerWeights& layer : newest->content().layers)
      for (const ArrayRef& weight : layer.weights) {
        const auto* values = static_cast<const float*>(weight.data);
        CHECK(std::all_of(values, values + weight.shape.elements(),
                          [](float value) { return std::isfinite(value); }));
      }
  }
}
