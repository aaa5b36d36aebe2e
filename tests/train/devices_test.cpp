// Compares a model on several devices (placed or pipelined) with the same model on one device.
#include <algorithm>
#include <cmath>
#include <fstream>

#include <fmt/format.h>

#include "outcome.h"

using namespace dtrain;
using namespace dtrain::test;

namespace {

// The activations are smooth, as in replicas_test.cpp. Epochs end with batches of 2 samples and of 1 sample.
constexpr auto kMlp = R"(
seed: 3
model:
  inputs: {x: [12]}
  layers:
    - dense: {units: 16, activation: tanh, name: first}
    - layer_normalization: {name: normal}
    - dropout: {rate: 0.3, name: drop}
    - dense: {units: 16, activation: tanh, name: second}
    - dense: {units: 8, activation: silu, name: third}
    - dense: {units: 5, name: head}
dataset:
  train: {synthetic: {samples: 138, target: {classes: 5}, seed: 4}}
  validation: {synthetic: {samples: 35, target: {classes: 5}, seed: 5}}
strategy: single
train:
  epochs: 11
  batch_size: 17
  loss: {sparse_categorical_crossentropy: {from_logits: true}}
  optimizer: {adam: {learning_rate: 0.003}}
  metrics: [sparse_categorical_accuracy, f1_score]
)";

std::string pipeline(const std::string& stages, int microbatches, const std::string& schedule,
                     int replicas = 1) {
  const auto count = (1 + std::count(stages.begin(), stages.end(), ',') + 1) * replicas;
  std::string devices;
  for (int i = 0; i < count; ++i) devices += fmt::format("{}cpu:{}", i > 0 ? ", " : "", i);
  return fmt::format(
      "strategy={{pipeline: {{devices: [{}], stages: [{}], microbatches: {}, schedule: {}, replicas: {}}}}}",
      devices, stages, microbatches, schedule, replicas);
}

std::string placed(const std::string& layers) {
  return fmt::format("strategy={{placed: {{layers: {{{}}}}}}}", layers);
}

using Sets = std::vector<std::string>;

Sets operator+(Sets sets, const std::string& more) {
  sets.push_back(more);
  return sets;
}

/// Compares the run under each strategy to the run on one device, whose loss must decrease.
void check_all(const std::string& yaml, const Sets& strategies, const Sets& sets = {}) {
  const Outcome single = outcome_of(yaml, sets);
  CHECK(single.history.back().at("loss").as_double() < single.history.front().at("loss").as_double());
  for (const std::string& strategy : strategies) {
    CAPTURE(strategy);
    check_close(outcome_of(yaml, sets + strategy), single);
  }
}

}  // namespace

TEST_CASE("a pipeline gives one device's losses for any stages and microbatches and either schedule") {
  Sets strategies;
  for (const char* stages : {"second", "normal, third", "drop, second, head"})
    for (const int microbatches : {1, 3, 8})
      for (const char* schedule : {"gpipe", "1f1b"})
        strategies.push_back(pipeline(stages, microbatches, schedule));
  check_all(kMlp, strategies);
}

TEST_CASE(
    "replicated pipelines give one device's losses, even with fewer samples than replicas in the last "
    "batch") {
  check_all(kMlp, {pipeline("second", 3, "1f1b", 2), pipeline("normal, head", 2, "gpipe", 3)});
}

TEST_CASE("placed layers may alternate between devices") {
  const std::string to_and_fro = "first: cpu:0, normal: cpu:1, drop: cpu:0, second: cpu:1, third: cpu:0";
  check_all(kMlp,
            {placed(to_and_fro), placed("first: cpu:1, head: cpu:2"), placed("head: cpu:1, first: cpu:0")});
  const Outcome by_layers = outcome_of(
      kMlp, {"strategy=placed", "model.layers.0.dense.device=cpu:0", "model.layers.3.dense.device=cpu:1"});
  check_close(by_layers, outcome_of(kMlp));
}

TEST_CASE("the same run over several devices gives the same bits") {
  for (const std::string& strategy : {pipeline("normal, third", 3, "1f1b"), pipeline("second", 4, "gpipe", 2),
                                      placed("first: cpu:0, third: cpu:1")}) {
    CAPTURE(strategy);
    const Outcome once = outcome_of(kMlp, {strategy, "train.epochs=3"});
    CHECK(once == outcome_of(kMlp, {strategy, "train.epochs=3"}));
  }
}

TEST_CASE("training options have the same effect on several devices") {
  const Sets strategies{placed("first: cpu:1, third: cpu:0, head: cpu:1"),
                        pipeline("normal, third", 3, "1f1b"), pipeline("second, head", 4, "gpipe", 2)};
  const Outcome plain = outcome_of(kMlp, {"train.epochs=4"});
  const std::vector<Sets> options{
      {"train.clip_norm=0.05"},
      {"train.clip_value=0.003"},
      {"train.accumulate=3"},
      {"train.accumulate=3", "train.clip_norm=0.1", "train.class_weight={0: 0.3, 3: 4}"},
      {"train.class_weight=balanced"},
      {"train.optimizer={adamw: {learning_rate: 0.01, weight_decay: 0.1}}"},
      {"train.optimizer={sgd: {learning_rate: 0.1, momentum: 0.9, nesterov: true}}"},
      {"train.optimizer={lamb: {learning_rate: 0.01, weight_decay: 0.1}}", "train.clip_norm=0.5"},
      {"train.optimizer={adafactor: {learning_rate: 0.01, weight_decay: 0.1}}", "train.clip_norm=0.5",
       "train.callbacks=[{ema: {decay: 0.9}}]"},
      {"train.callbacks=[{ema: {decay: 0.9}}]"},
      {"train.groups=[{weights: '*/bias', weight_decay: 0.1}, {weights: 'second/*', learning_rate_factor: "
       "0.1}, {weights: 'third/*', trainable: false}]"},
      {"model.freeze=[first, normal]"},  // the whole first stage is frozen and needs no gradient
      {"model.freeze=[second, third, head]"},
      {"dataset.validation={split: {of: train, fraction: 0.2, stratify: true}}"},
  };
  for (Sets sets : options) {
    CAPTURE(sets[0]);
    sets.push_back("train.epochs=4");
    const Outcome single = outcome_of(kMlp, sets);
    CHECK(!(single == plain));
    for (const std::string& strategy : strategies) {
      CAPTURE(strategy);
      check_close(outcome_of(kMlp, sets + strategy), single);
    }
  }
}

TEST_CASE("skip connections may pass over stages") {
  constexpr auto yaml = R"(
seed: 3
model:
  inputs: {image: [8, 8, 3]}
  layers:
    - conv2d: {name: down1, filters: 6, kernel_size: 3, padding: same, activation: tanh}
    - average_pooling2d: {name: pool1, pool_size: 2}
    - conv2d: {name: down2, filters: 8, kernel_size: 3, padding: same, activation: silu}
    - average_pooling2d: {name: pool2, pool_size: 2}
    - conv2d: {name: bottom, filters: 12, kernel_size: 3, padding: same, activation: tanh}
    - conv2d_transpose: {name: up2, filters: 8, kernel_size: 2, strides: 2}
    - concatenate: {name: skip2, inputs: [up2, down2]}
    - conv2d: {name: fuse2, filters: 8, kernel_size: 3, padding: same, activation: sigmoid}
    - conv2d_transpose: {name: up1, filters: 6, kernel_size: 2, strides: 2}
    - concatenate: {name: skip1, inputs: [up1, down1]}
    - conv2d: {name: fuse1, filters: 6, kernel_size: 3, padding: same, activation: tanh}
    - conv2d: {name: mask, filters: 1, kernel_size: 1, activation: sigmoid}
dataset:
  train: {synthetic: {samples: 26, target: {shape: [8, 8, 1]}, seed: 6}}
  validation: {synthetic: {samples: 7, target: {shape: [8, 8, 1]}, seed: 7}}
strategy: single
train:
  epochs: 7
  batch_size: 8
  loss: binary_crossentropy
  optimizer: {adam: {learning_rate: 0.003}}
  metrics: [mean_absolute_error]
)";
  check_all(yaml, {pipeline("bottom, fuse2", 4, "1f1b"), pipeline("bottom, fuse2", 3, "gpipe"),
                   pipeline("pool1, bottom, skip1", 8, "1f1b"), pipeline("pool1, bottom, skip1", 8, "gpipe"),
                   pipeline("up2", 2, "1f1b", 2), placed("'down*': cpu:0, bottom: cpu:1, 'fuse*': cpu:2")});
}

TEST_CASE("branches may be on separate devices, and several devices may read an input") {
  constexpr auto yaml = R"(
seed: 3
model:
  inputs: {image: [6, 6, 2], hint: [4]}
  layers:
    - conv2d: {name: left/stem, filters: 4, kernel_size: 3, padding: same, activation: tanh, inputs: image}
    - global_average_pooling2d: {name: left/mean}
    - conv2d: {name: right/stem, filters: 4, kernel_size: 5, padding: same, activation: silu, inputs: image}
    - flatten: {name: right/flat}
    - dense: {name: right/body, units: 4, activation: tanh}
    - dense: {name: hinted, units: 4, inputs: hint}
    - add: {name: sum, inputs: [left/mean, right/body, hinted]}
    - concatenate: {name: merged, inputs: [sum, right/flat, hint]}
    - dense: {name: answer, units: 3, activation: softmax, inputs: merged}
  outputs: answer
dataset:
  train: {synthetic: {samples: 50, target: {classes: 3}, seed: 4}}
  validation: {synthetic: {samples: 9, target: {classes: 3}, seed: 5}}
strategy: single
train:
  epochs: 8
  batch_size: 16
  loss: sparse_categorical_crossentropy
  optimizer: {adam: {learning_rate: 0.003}}
  metrics: [sparse_categorical_accuracy]
)";
  check_all(yaml, {placed("'left/*': cpu:0, 'right/*': cpu:1, merged: cpu:0"),
                   placed("'left/*': cpu:0, 'right/*': cpu:1, hinted: cpu:2, answer: cpu:3"),
                   placed("sum: cpu:1, answer: cpu:0, merged: cpu:1"), pipeline("right/stem, sum", 3, "1f1b"),
                   pipeline("hinted, answer", 5, "gpipe", 2)});
}

TEST_CASE("layers may share weights on one device and on several") {
  constexpr auto yaml = R"(
seed: 3
model:
  inputs: {a: [6], b: [6]}
  layers:
    - dense: {name: encoded_a, units: 6, activation: tanh, inputs: a}
    - dense: {name: encoded_b, shared_with: encoded_a, inputs: b}
    - layer_normalization: {name: normal, inputs: encoded_a}
    - layer_normalization: {name: again, shared_with: normal, inputs: encoded_b}
    - concatenate: {name: merged, inputs: [normal, again]}
    - dense: {name: mixed, units: 6, activation: silu}
    - dense: {name: encoded_c, shared_with: encoded_a}
    - dense: {name: head, units: 3}
dataset:
  train: {synthetic: {samples: 60, target: {classes: 3}, seed: 4}}
  validation: {synthetic: {samples: 9, target: {classes: 3}, seed: 5}}
strategy: single
train:
  epochs: 10
  batch_size: 16
  loss: {sparse_categorical_crossentropy: {from_logits: true}}
  optimizer: {adam: {learning_rate: 0.003}}
  metrics: [sparse_categorical_accuracy]
)";
  const Sets strategies{
      placed("encoded_a: cpu:0, encoded_b: cpu:1, merged: cpu:0"),
      placed("encoded_a: cpu:1, encoded_b: cpu:0, encoded_c: cpu:0, normal: cpu:2, head: cpu:1"),
      placed("encoded_a: cpu:0, mixed: cpu:1"),
      pipeline("normal, encoded_c", 4, "1f1b"),
      pipeline("encoded_b, mixed, head", 8, "1f1b"),
      pipeline("encoded_b, mixed, head", 3, "gpipe"),
      pipeline("mixed", 2, "1f1b", 2)};
  check_all(yaml, strategies);
  check_all(yaml, strategies, {"train.clip_norm=0.1", "train.accumulate=2", "model.freeze=normal"});
  check_all(yaml, strategies, {"model.freeze=encoded_a", "train.callbacks=[{ema: {decay: 0.9}}]"});
}

TEST_CASE("several outputs have their losses and metrics on their devices, also with row weights") {
  const TempDir directory;
  {
    std::ofstream file(directory / "rows.csv");
    for (int i = 0; i < 50; ++i)
      file << fmt::format("{:.4f},{:.4f},{:.4f},{},{:.4f},{}\n", std::sin(i), std::cos(3 * i),
                          std::sin(5 * i), i % 3, std::cos(i), i % 4 * 0.5);
  }
  const std::string yaml = fmt::format(R"(
seed: 3
model:
  inputs: {{x: [3]}}
  layers:
    - dense: {{name: trunk, units: 8, activation: tanh}}
    - dense: {{name: digit, units: 3}}
    - dense: {{name: ink/hidden, units: 4, activation: silu, inputs: trunk}}
    - dense: {{name: ink, units: 1}}
  outputs: [digit, ink]
dataset:
  train: {{csv: {{file: {0}, targets: {{digit: 3, ink: 4}}, weight: 5}}}}
  validation: {{csv: {{file: {0}, targets: {{digit: 3, ink: 4}}, weight: 5}}}}
strategy: single
train:
  epochs: 8
  batch_size: 16
  loss:
    digit: {{sparse_categorical_crossentropy: {{from_logits: true, label_smoothing: 0.1}}}}
    ink: {{mean_squared_error: {{weight: 0.5}}}}
  metrics: {{digit: [sparse_categorical_accuracy, confusion_matrix], ink: [mean_absolute_error]}}
  weighted_metrics: {{digit: [sparse_categorical_accuracy], ink: [mean_squared_error]}}
  optimizer: {{adamw: {{learning_rate: 0.01, weight_decay: 0.01}}}}
)",
                                       directory / "rows.csv");
  const Sets strategies{placed("trunk: cpu:0, digit: cpu:1, 'ink*': cpu:2"),
                        placed("trunk: cpu:0, digit: cpu:1, ink/hidden: cpu:0"),
                        pipeline("digit, ink/hidden", 3, "1f1b"), pipeline("ink/hidden, ink", 8, "gpipe"),
                        pipeline("digit", 2, "1f1b", 2)};
  check_all(yaml, strategies);
  check_all(yaml, strategies, {"train.clip_norm=0.05", "train.accumulate=2"});
}

TEST_CASE("batch normalization normalizes each microbatch of a pipeline and of `accumulate`") {
  constexpr auto yaml = R"(
seed: 3
model:
  inputs: {image: [6, 6, 2]}
  layers:
    - conv2d: {name: first, filters: 4, kernel_size: 3, padding: same, use_bias: false}
    - batch_normalization: {name: normal, momentum: 0.8}
    - activation: {name: active, activation: tanh}
    - conv2d: {name: second, filters: 6, kernel_size: 3, padding: same, use_bias: false}
    - batch_normalization: {name: again}
    - activation: silu
    - global_average_pooling2d: {name: mean}
    - dense: {name: head, units: 3}
dataset:
  train: {synthetic: {samples: 56, target: {classes: 3}, seed: 4}}
  validation: {synthetic: {samples: 10, target: {classes: 3}, seed: 5}}
strategy: single
train:
  epochs: 8
  batch_size: 16
  loss: {sparse_categorical_crossentropy: {from_logits: true}}
  optimizer: {sgd: {learning_rate: 0.02, momentum: 0.9}}
  metrics: [sparse_categorical_accuracy]
)";
  check_all(yaml, {placed("first: cpu:0, normal: cpu:1, second: cpu:0, head: cpu:1"),
                   pipeline("active, again", 1, "1f1b"), pipeline("second", 1, "gpipe")});
  const Outcome cut = outcome_of(yaml, {"train.accumulate=2"});
  CHECK(std::abs(cut.losses.back() - outcome_of(yaml).losses.back()) > 1e-3);
  check_close(outcome_of(yaml, {pipeline("active, again", 2, "1f1b")}), cut);
  check_close(outcome_of(yaml, {pipeline("normal", 2, "gpipe")}), cut);
  check_close(outcome_of(yaml, {placed("second: cpu:0, again: cpu:1"), "train.accumulate=2"}), cut);
  // The replicas of a pipeline can use synchronized batch normalization.
  const Sets together{"model.layers.1.batch_normalization.synchronized=true",
                      "model.layers.4.batch_normalization.synchronized=true"};
  for (const std::string& strategy :
       {pipeline("active, again", 2, "1f1b", 2), pipeline("normal", 2, "gpipe", 3)}) {
    CAPTURE(strategy);
    check_close(outcome_of(yaml, together + strategy), cut);
  }
}

TEST_CASE("no memory is planned for more microbatches than a batch has samples") {
  const auto activations = [](int microbatches) {
    const RunConfig config =
        config_from(kMlp, {pipeline("second", microbatches, "gpipe"), "train.batch_size=8"});
    const RunPlan plan = plan_run(config, single_process());
    Engine engine(plan);
    std::vector<size_t> bytes;
    for (const MemoryPlan& device : engine.memory().plan(Plan::Purpose::training, 8))
      bytes.push_back(device.activations);
    return bytes;
  };
  CHECK(activations(64) == activations(8));
  CHECK(activations(7) != activations(8));
}
