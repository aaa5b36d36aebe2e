// Tests pipelines over several processes. Either each process has whole replicas, or the processes divide the
// stages.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "process_runs.h"

using namespace dtrain;
using namespace dtrain::test;

TEST_CASE("pipelines give the same bits on several processes") {
  for (const std::string& pipeline : kPipelines) {
    CAPTURE(pipeline);
    check_divisions(kRun, {}, {{2, 2}, {1, 1, 1, 1}, {3, 1}, {1, 2, 1}}, pipeline);
  }
  const auto masked = [](int replicas) { return Sets{pipeline_of(replicas, 2, "dense", 2)}; };
  const Result whole = results_of(kMasked, masked(4), {4})[0];
  for (const Result& result : results_of(kMasked, masked(2), {2, 2})) CHECK(result == whole);
}

TEST_CASE("training options give the same bits with pipelines of several processes") {
  const std::vector<Sets> options{
      {"train.accumulate=3"},
      {"train.clip_norm=0.05"},
      {"train.optimizer={lamb: {learning_rate: 0.01, weight_decay: 0.1}}", "train.clip_norm=0.5"},
      {"train.optimizer={adafactor: {learning_rate: 0.05, weight_decay: 0.1}}"},
      {"train.class_weight={0: 0.3, 3: 4}", "train.accumulate=2", "train.clip_norm=0.1"},
      {"model.layers.0.dense.kernel_regularizer={l2: 0.01}",
       "model.layers.4.dense.kernel_regularizer={l2: 0.03}", "train.clip_norm=0.05"},
      {"model.layers.0.dense.kernel_constraint={max_norm: {max_value: 0.5}}"},
      {"model.layers.0.dense.trainable=false"},
      {"train.callbacks=[{ema: {decay: 0.9}}]", "checkpoint.best={monitor: val_loss}"},
      {"model.layers.3.batch_normalization.synchronized=true", "train.accumulate=3"},
  };
  for (const std::string& pipeline : kPipelines)
    for (const Sets& sets : options) {
      CAPTURE(pipeline);
      CAPTURE(sets[0]);
      check_divisions(kRun, sets, {{2, 2}, {3, 1}}, pipeline);
    }
}

TEST_CASE("stages give the same bits however they are divided among processes") {
  // Each list has one number for each process. The numbers themselves do not matter in these tests.
  check_divisions(kRun, {}, {{1, 1}, {1, 1, 1}, {1, 1, 1, 1}}, "divided stages");
  check_divisions(kRun, {}, {{1, 1}, {1, 1, 1}}, "divided replicas");
}

TEST_CASE("training options give the same bits with stages in several processes") {
  const std::vector<Sets> options{
      {"train.accumulate=3"},
      {"train.clip_norm=0.05"},
      {"strategy.pipeline.schedule=gpipe"},
      {"train.optimizer={lamb: {learning_rate: 0.01, weight_decay: 0.1}}", "train.clip_norm=0.5"},
      {"train.optimizer={adafactor: {learning_rate: 0.05, weight_decay: 0.1}}"},
      {"train.class_weight={0: 0.3, 3: 4}", "train.accumulate=2", "train.clip_norm=0.1"},
      {"model.layers.0.dense.kernel_regularizer={l2: 0.01}",
       "model.layers.4.dense.kernel_regularizer={l2: 0.03}", "train.clip_norm=0.05"},
      {"model.layers.0.dense.kernel_constraint={max_norm: {max_value: 0.5}}"},
      {"model.layers.0.dense.trainable=false"},
      {"train.callbacks=[{ema: {decay: 0.9}}]", "checkpoint.best={monitor: val_loss}"},
      {"model.layers.3.batch_normalization.synchronized=true", "train.accumulate=3"},
  };
  for (const std::string& strategy : kDivided)
    for (const Sets& sets : options) {
      CAPTURE(strategy);
      CAPTURE(sets[0]);
      check_divisions(kRun, sets, {{1, 1}, {1, 1, 1}}, strategy);
    }
}

TEST_CASE("values pass over processes between the stages that exchange them") {
  // The models have a skip connection, outputs on two stages, shared parameters, masks and row weights.
  const TempDir directory;
  {
    std::ofstream file(directory / "rows.csv");
    for (int i = 0; i < 50; ++i)
      file << fmt::format("{:.4f},{:.4f},{:.4f},{},{:.4f},{}\n", std::sin(i), std::cos(3 * i),
                          std::sin(5 * i), i % 3, std::cos(i), i % 4 * 0.5);
  }
  const std::string connected = fmt::format(R"(
seed: 3
model:
  inputs: {{x: [3]}}
  layers:
    - dense: {{name: first, units: 8, activation: tanh}}
    - dense: {{name: second, units: 8, activation: tanh}}
    - dense: {{name: early, units: 3}}
    - dense: {{name: third, shared_with: second, inputs: second}}
    - add: {{name: sum, inputs: [third, first]}}
    - dense: {{name: late, units: 1}}
  outputs: [early, late]
dataset:
  train: {{csv: {{file: {0}, targets: {{early: 3, late: 4}}, weight: 5}}}}
  validation: {{csv: {{file: {0}, targets: {{early: 3, late: 4}}, weight: 5}}}}
train:
  epochs: 4
  batch_size: 16
  loss: {{early: {{sparse_categorical_crossentropy: {{from_logits: true}}}}, late: mean_squared_error}}
  metrics: {{early: [sparse_categorical_accuracy], late: [mean_absolute_error]}}
  optimizer: {{adam: {{learning_rate: 0.01}}}}
)",
                                            directory / "rows.csv");
  check_divisions(connected, {divided(1, 4, "second, third, late", 4)}, {{1, 1}, {1, 1, 1}, {1, 1, 1, 1}},
                  "divided stages");
  check_divisions(kMasked, {divided(2, 3, "lstm, dense", 2)}, {{1, 1}, {1, 1, 1}}, "divided replicas");
}

TEST_CASE("the state of stages in several processes is read whole, and written in parts") {
  const TempDir directory;
  Processes processes(3);
  processes.run([&](World& world) {
    Recorder recorder;
    Trainer trainer(plan_on_one_core(config_of(kRun, {}, 1, "divided stages"), world),
                    RunDirectory(directory / "run"), recorder, recorder.requests);
    trainer.start();
    ModelState& state = trainer.engine().state();
    if (!state.is_spread() || state.has_all_weights()) throw Error("the state is not spread");
    const ParameterLayout& layout = trainer.engine().layout();
    for (const std::string_view array : {kParameters, std::string_view("momentum")}) {
      const Range all{0, array == kParameters ? layout.size() : layout.trained()};
      std::vector<float> values(static_cast<size_t>(all.size()));
      for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i + 1);
      state.write(array, all, values.data());
      state.finish_writing();
      std::vector<float> found(values.size());
      state.read(array, all, found.data());
      for (const ParameterSlice& slice : layout.slices())
        if (slice.offset < all.end &&
            !std::equal(found.begin() + slice.offset, found.begin() + slice.offset + slice.elements(),
                        values.begin() + slice.offset))
          throw Error("wrong values of " + slice.path());
    }
    if (trainer.engine().memory_use().size() != (world.rank() == 0 ? 2u : 1u)) throw Error("wrong slots");
  });
  CHECK(processes.queues().is_empty());
}

TEST_CASE("the memory that `check` plans for stages in several processes is allocated there") {
  // In this model, the values that are sent between stages take more memory than the parameters.
  constexpr auto kWide = R"(
model:
  inputs: {x: [4096]}
  layers:
    - layer_normalization: {name: first}
    - layer_normalization: {name: second}
    - layer_normalization: {name: third}
    - dense: {units: 2}
dataset: {train: {synthetic: {samples: 96, target: {classes: 2}}}}
train:
  epochs: 1
  batch_size: 32
  loss: {sparse_categorical_crossentropy: {from_logits: true}}
  optimizer: sgd
)";
  const RunConfig config = config_from(kWide, {divided(1, 3, "second, third", 4)});
  const TempDir directory;
  Processes processes(3);
  processes.run([&](World& world) {
    Recorder recorder;
    Trainer trainer(plan_on_one_core(config, world), RunDirectory(directory / "run"), recorder,
                    recorder.requests);
    trainer.start();
    trainer.run();
    const auto planned = trainer.engine().memory().plan(Plan::Purpose::training, 32);
    const auto uses = trainer.engine().memory_use();
    if (planned.size() != 1 || uses.size() != 1) throw Error("wrong slots");
    CAPTURE(world.rank());
    CHECK(static_cast<double>(uses[0].most) ==
          doctest::Approx(static_cast<double>(planned[0].total())).epsilon(0.05));
  });
}

TEST_CASE("stages that cannot be divided among the processes are an error with a location") {
  const RunConfig config = config_of(kRun, {}, 1, "divided replicas");
  Processes processes(4);
  CHECK_THROWS_WITH_AS(processes.run([&](World& world) { plan_training(config, world); }),
                       doctest::Contains("`across: processes`: 3 stages cannot be divided among 4 processes"),
                       UserError);
}

TEST_CASE("all processes use the stages that process 0 chose") {
  for (const bool deterministic : {false, true}) {
    CAPTURE(deterministic);
    const RunConfig config =
        config_from(kRun, {"strategy={pipeline: {devices: [cpu:0, cpu:1, cpu:2], stages: auto}}",
                           fmt::format("train.deterministic={}", deterministic)});
    std::vector<std::vector<int>> slots(2);
    Processes processes(2);
    processes.run([&](World& world) {
      slots[static_cast<size_t>(world.rank())] = plan_training(config, world).placement.slots;
    });
    CHECK(slots[0].size() == config.graph.nodes.size());
    CHECK(slots[0] == slots[1]);
    CHECK(processes.queues().is_empty());
  }
}

TEST_CASE("all processes use the stages that process 0 chose for them") {
  const RunConfig config = config_from(
      kRun, {"strategy={pipeline: {devices: [cpu:0, cpu:1, cpu:2], stages: auto, across: processes}}"});
  std::vector<std::vector<int>> slots(2);
  Processes processes(2);
  processes.run([&](World& world) {
    slots[static_cast<size_t>(world.rank())] = plan_training(config, world).placement.slots;
  });
  CHECK(slots[0].size() == config.graph.nodes.size());
  CHECK(slots[0] == slots[1]);
}

TEST_CASE("different numbers of stages are an error with a location") {
  const std::vector<RunConfig> configs{config_of(kRun, {}, 1, "two stages"),
                                       config_of(kRun, {}, 1, "three stages")};
  Processes processes(2);
  CHECK_THROWS_WITH_AS(
      processes.run([&](World& world) { plan_training(configs[static_cast<size_t>(world.rank())], world); }),
      doctest::Contains("a replica has 2 CPUs in process 0, but 3 CPUs in process 1"), UserError);
}
