// Compares the memory that a run allocates on each device with the memory plan that `dtrain check` shows.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "support/runs.h"

using namespace dtrain;
using namespace dtrain::test;

namespace {

using Sets = std::vector<std::string>;

/// Twelve blocks of the same size between a stem and a head.
constexpr auto kBlocks = R"(
seed: 3
model:
  inputs: {x: [64]}
  blocks:
    block:
      layers:
        - dense: {units: 256, activation: gelu}
        - layer_normalization: {}
        - dropout: {rate: 0.1}
        - dense: {units: 64, activation: tanh}
  layers:
    - dense: {units: 64, name: stem}
    - block: {repeat: 12}
    - dense: {units: 4, name: head}
dataset:
  train: {synthetic: {samples: 768, target: {classes: 4}, seed: 4}}
  validation: {synthetic: {samples: 96, target: {classes: 4}, seed: 5}}
strategy: {single: {device: cpu:0}}
train:
  epochs: 1
  batch_size: 64
  loss: {sparse_categorical_crossentropy: {from_logits: true}}
  optimizer: {adam: {learning_rate: 0.003}}
)";

/// Convolutions on images, with a skip connection across stages.
constexpr auto kUnet = R"(
seed: 3
model:
  inputs: {image: [16, 16, 3]}
  layers:
    - conv2d: {filters: 32, kernel_size: 3, padding: same, activation: tanh, name: down_1}
    - conv2d: {filters: 64, kernel_size: 3, padding: same, activation: tanh, strides: 2, name: down_2}
    - conv2d: {filters: 64, kernel_size: 3, padding: same, activation: tanh, name: middle}
    - batch_normalization: {name: normal}
    - conv2d_transpose: {filters: 32, kernel_size: 2, strides: 2, name: up}
    - concatenate: {inputs: [up, down_1], name: joined}
    - conv2d: {filters: 32, kernel_size: 3, padding: same, activation: tanh, name: last}
    - conv2d: {filters: 2, kernel_size: 1, name: head}
dataset: {train: {synthetic: {samples: 48, target: {classes: 2}, seed: 4}}}
strategy: {single: {device: cpu:0}}
train:
  epochs: 1
  batch_size: 16
  loss: {sparse_categorical_crossentropy: {from_logits: true}}
  optimizer: {sgd: {learning_rate: 0.01, momentum: 0.9}}
  clip_norm: 1
)";

std::string pipeline(const char* schedule, const char* stages, int microbatches) {
  return fmt::format(
      "strategy={{pipeline: {{devices: [cpu:0, cpu:1, cpu:2, cpu:3], stages: [{}], schedule: {}, "
      "microbatches: {}}}}}",
      stages, schedule, microbatches);
}

std::string sharded(const char* level) {
  return fmt::format("strategy={{sharded: {{devices: [cpu:0, cpu:1, cpu:2, cpu:3], level: {}}}}}", level);
}

constexpr auto kFourStages = "block_3, block_6, block_9";

/// The memory plan of a device, and the peak of its allocations.
struct Memory {
  MemoryPlan plan;
  size_t allocated;
};

/// Trains for one epoch, and returns the memory of each device.
std::vector<Memory> memory_of(const std::string& yaml, const Sets& sets) {
  const TempDir directory;
  Recorder recorder;
  const RunConfig config = config_from(yaml, sets);
  const int64_t batch = config.train.batch_size;
  Trainer trainer(plan_from(yaml, sets), RunDirectory(directory / "run"), recorder, recorder.requests);
  trainer.start();
  trainer.run();
  std::vector<Memory> memory;
  const std::vector<MemoryUse> uses = trainer.engine().memory_use();
  for (const MemoryPlan& plan : trainer.engine().memory().plan(Plan::Purpose::training, batch))
    memory.push_back({plan, uses[memory.size()].most});
  return memory;
}

/// Returns the bytes of parameters and slots on each device.
std::vector<double> state_of(const std::string& yaml, const Sets& sets) {
  const RunConfig config = config_from(yaml, sets);
  const RunPlan run = plan_run(config, single_process());
  const Placement& placement = run.placement;
  Engine engine(run);
  const std::vector<MemoryUse> before = engine.memory_use();
  engine.allocate(Plan::Purpose::training, config.train.batch_size);
  const std::vector<MemoryUse> after = engine.memory_use();
  std::vector<double> state;
  for (const MemoryPlan& plan : engine.memory().plan(Plan::Purpose::training, config.train.batch_size)) {
    const size_t i = state.size();
    // Sharded gradients are allocated together with the slots. They do not count as state here.
    const size_t gradients = placement.sharded >= ShardLevel::gradients ? plan.gradients : 0;
    state.push_back(static_cast<double>(after[i].now - before[i].now - gradients));
    CHECK(state.back() == static_cast<double>(plan.parameters + plan.optimizer_slots));
  }
  return state;
}

/// Returns the bytes that a run allocates on each device besides parameters, slots and gradients.
std::vector<double> activations_of(const std::string& yaml, const Sets& sets) {
  std::vector<double> bytes;
  for (const auto& [plan, allocated] : memory_of(yaml, sets))
    bytes.push_back(static_cast<double>(allocated - plan.parameters - plan.optimizer_slots - plan.gradients));
  return bytes;
}

double most(const std::vector<double>& values) {
  return *std::max_element(values.begin(), values.end());
}

void check_plans(const std::string& yaml, const std::vector<Sets>& runs) {
  for (const Sets& sets : runs) {
    CAPTURE(fmt::format("{}", fmt::join(sets, " ")));
    for (const auto& planned : memory_of(yaml, sets)) {
      const auto& plan = planned.plan;
      CAPTURE(plan.device.str());
      CHECK(static_cast<double>(planned.allocated) ==
            doctest::Approx(static_cast<double>(plan.total())).epsilon(0.05));
    }
  }
}

}  // namespace

TEST_CASE("the memory that `check` plans for each device is allocated there") {
  const std::string recompute = "model.layers.1.block.recompute=true";
  const std::string placed =
      "strategy={placed: {layers: {stem: cpu:0, 'block/*': cpu:2, 'block_7/*': cpu:1, head: cpu:0}}}";
  const std::string mirrored = "strategy={mirrored: {devices: [cpu:0, cpu:1, cpu:2]}}";
  check_plans(kBlocks, {{},
                        {recompute},
                        {"train.accumulate=4"},
                        {mirrored},
                        {placed},
                        {placed, "train.accumulate=2", "train.clip_norm=1"},
                        {pipeline("1f1b", kFourStages, 8)},
                        {pipeline("gpipe", kFourStages, 8)},
                        {pipeline("1f1b", kFourStages, 8), recompute},
                        {pipeline("1f1b", "block_5", 4), "strategy.pipeline.replicas=2"},
                        {pipeline("1f1b", kFourStages, 8), "train.batch_size=50"},
                        {sharded("optimizer")},
                        {sharded("gradients")},
                        {sharded("parameters")},
                        {sharded("parameters"), "train.accumulate=2", "train.clip_norm=1"},
                        {sharded("parameters"), recompute}});
}

TEST_CASE("the memory that `check` plans for each device is allocated there, also for images") {
  check_plans(kUnet, {{},
                      {"strategy={mirrored: {devices: [cpu:0, cpu:1]}}"},
                      {"strategy={placed: {layers: {down_1: cpu:0, down_2: cpu:1, up: cpu:0}}}"},
                      {pipeline("1f1b", "down_2, normal, joined", 8)},
                      {pipeline("gpipe", "down_2, normal, joined", 4)},
                      {pipeline("1f1b", "down_2, normal, joined", 4), "train.batch_size=11"},
                      {pipeline("gpipe", "down_2, normal, joined", 3), "train.batch_size=13"},
                      {sharded("gradients")},
                      {sharded("parameters")}});
}

TEST_CASE(
    "one of four stages has at most 0.35 of the parameters and slots, one of four shards at most 0.30") {
  const double single = most(state_of(kBlocks, {}));
  CHECK(most(state_of(kBlocks, {pipeline("1f1b", kFourStages, 8)})) <= 0.35 * single);
  CHECK(most(state_of(kBlocks, {sharded("parameters")})) <= 0.30 * single);
}

TEST_CASE("1f1b keeps the activations of no more microbatches than there are remaining stages") {
  const auto with = [](const char* schedule, int microbatches) {
    return activations_of(kBlocks, {pipeline(schedule, kFourStages, microbatches),
                                    fmt::format("train.batch_size={}", 16 * microbatches)});
  };
  const std::vector<double> few = with("1f1b", 4), many = with("1f1b", 24);
  for (size_t stage = 0; stage < few.size(); ++stage) CHECK(many[stage] <= 1.01 * few[stage]);
  CHECK(most(with("gpipe", 24)) > 3 * most(many));
}

TEST_CASE("recomputing twelve blocks at least halves the activations") {
  const Sets large{"train.batch_size=768"};
  Sets again = large;
  again.push_back("model.layers.1.block.recompute=true");
  CHECK(most(activations_of(kBlocks, again)) <= 0.5 * most(activations_of(kBlocks, large)));
}
