// Tests strategies: the placement of layers on devices, and how a strategy is written to config.yaml.
#include <fmt/format.h>

#include "run/placement.h"
#include "support/runs.h"

using namespace dtrain;
using namespace dtrain::test;

namespace {

/// A model with two joined branches, a repeated block, and activations both as options and as layers.
constexpr auto kModel = R"(
model:
  inputs: {left: [4], right: [4]}
  blocks:
    pair: {layers: [dense: {units: 4, activation: tanh}, layer_normalization: {}]}
  layers:
    - activation: {activation: relu, name: start, inputs: right}
    - dense: {units: 4, name: a/first, activation: relu, inputs: left}
    - dense: {units: 4, name: a/second}
    - dense: {units: 4, name: b/first, inputs: start}
    - activation: {activation: tanh, name: plain}
    - add: {inputs: [a/second, plain], name: sum}
    - pair: {repeat: 2}
    - dense: {units: 3, name: head}
dataset: {train: {synthetic: {samples: 40, target: {classes: 3}}}}
train: {loss: {sparse_categorical_crossentropy: {from_logits: true}}, optimizer: sgd}
strategy: )";

RunConfig run_with(const std::string& strategy, const std::vector<std::string>& sets = {}) {
  return config_from(kModel + strategy + "\n", sets);
}

/// Returns "name device" for every layer and input, in order.
std::vector<std::string> places(const RunConfig& config, const Placement& placement) {
  std::vector<std::string> lines;
  for (size_t i = 0; i < config.graph.nodes.size(); ++i) {
    const GraphNode& node = config.graph.nodes[i];
    std::string line = node.name;
    for (const DeviceId& device : placement.devices_of(static_cast<int>(i))) line += " " + device.str();
    if (node.is_activation_of_previous)
      CHECK(placement.devices_of(static_cast<int>(i)) == placement.devices_of(static_cast<int>(i) - 1));
    else
      lines.push_back(line);
  }
  return lines;
}

/// Returns the places that the strategy chooses.
std::vector<std::string> places(const RunConfig& config) {
  return places(config, config.strategy->place(workload_of(config)));
}

std::vector<std::string> device_names(const std::vector<DeviceId>& devices) {
  std::vector<std::string> names;
  for (const DeviceId& device : devices) names.push_back(device.str());
  return names;
}

using Lines = std::vector<std::string>;

/// Returns the run as read back from its config.yaml.
RunConfig read_back(const RunConfig& config) {
  return config_from(config.resolved.to_yaml());
}

}  // namespace

TEST_CASE("placed: layers without a pattern follow their first input, and inputs their first reader") {
  const RunConfig config = run_with("{placed: {layers: {'a/*': cpu:1, b/first: cpu:2, head: cpu:0}}}");
  CHECK(places(config) == Lines{"left cpu:1", "right cpu:2", "start cpu:2", "a/first cpu:1", "a/second cpu:1",
                                "b/first cpu:2", "plain cpu:2", "sum cpu:1", "pair/dense cpu:1",
                                "pair/layer_normalization cpu:1", "pair_1/dense cpu:1",
                                "pair_1/layer_normalization cpu:1", "head cpu:0"});
  const Placement placement = config.strategy->place(workload_of(config));
  REQUIRE(placement.replicas.size() == 1);
  // The devices are numbered in the order of the nodes.
  CHECK(device_names(placement.replicas[0]) == Lines{"cpu:1", "cpu:2", "cpu:0"});
  CHECK(placement.microbatches == 1);
  CHECK(placement.sharded == ShardLevel::none);
  CHECK(places(read_back(config)) == places(config));
}

TEST_CASE("placed: layers before the first placed layer are on its device") {
  const RunConfig config = run_with("{placed: {layers: {a/second: cpu:3}}}");
  CHECK(places(config) == Lines{"left cpu:3", "right cpu:3", "start cpu:3", "a/first cpu:3", "a/second cpu:3",
                                "b/first cpu:3", "plain cpu:3", "sum cpu:3", "pair/dense cpu:3",
                                "pair/layer_normalization cpu:3", "pair_1/dense cpu:3",
                                "pair_1/layer_normalization cpu:3", "head cpu:3"});
  CHECK(config.strategy->place(workload_of(config)).slots.empty());
}

TEST_CASE("placed: a layer's `device:` overrides patterns, and is resolved to a pattern") {
  const std::string sets[] = {"model.layers.2.dense.device=cpu:2", "model.layers.6.pair.device=cpu:1"};
  for (const char* strategy :
       {"placed", "{placed: {layers: {'a/*': cpu:5, head: cpu:3, '*/second': cpu:6}}}"}) {
    CAPTURE(strategy);
    RunConfig config = run_with(strategy, {sets[0], sets[1]});
    const Lines before = places(config);
    CHECK(before[4] == "a/second cpu:2");
    CHECK(before[8] == "pair/dense cpu:1");
    CHECK(before[11] == "pair_1/layer_normalization cpu:1");
    // The devices are now set in the model. They must give the same placement.
    CHECK(places(read_back(config)) == before);
    const RunPlan plan = plan_of(config);
    config = plan.config;
    CHECK(places(config) == before);
    CHECK(places(config, plan.placement) == before);
    const std::string yaml = config.resolved.to_yaml();
    CHECK(yaml.find("device:") == std::string::npos);
    RunConfig again = config_from(yaml);
    CHECK(places(again) == before);
    again = plan_of(again).config;
    CHECK(again.resolved.to_yaml() == yaml);
    // The model does not depend on the hardware, so it also works under another strategy.
    CHECK_NOTHROW(
        config_from(yaml, {"strategy={single: {device: cpu:0}}"}).strategy->place({.graph = again.graph}));
  }
}

TEST_CASE("pipeline: a stage begins at the named layer, or at the first layer of the named block") {
  const RunConfig config =
      run_with("{pipeline: {devices: [cpu:0, cpu:1, cpu:2], stages: [b/first, pair_1], microbatches: 5}}");
  CHECK(places(config) == Lines{"left cpu:0", "right cpu:0", "start cpu:0", "a/first cpu:0", "a/second cpu:0",
                                "b/first cpu:1", "plain cpu:1", "sum cpu:1", "pair/dense cpu:1",
                                "pair/layer_normalization cpu:1", "pair_1/dense cpu:2",
                                "pair_1/layer_normalization cpu:2", "head cpu:2"});
  const Placement placement = config.strategy->place(workload_of(config));
  CHECK(placement.microbatches == 5);
  CHECK(placement.schedule == PipelineSchedule::one_f_one_b);
  CHECK(places(read_back(config)) == places(config));
}

TEST_CASE("pipeline: an input is in the stage of its first reader") {
  const RunConfig config = run_with("{pipeline: {devices: [cpu:0, cpu:1], stages: [a/first]}}");
  const Lines found = places(config);
  CHECK(found[0] == "left cpu:1");
  CHECK(found[1] == "right cpu:0");
  CHECK(config.strategy->place(workload_of(config)).microbatches == 8);
}

TEST_CASE("pipeline: devices are divided among replicas in order") {
  const RunConfig config = run_with(
      "{pipeline: {devices: [cpu:0, cpu:1, cpu:2, cpu:3], stages: [sum], replicas: 2, schedule: gpipe}}");
  const Placement placement = config.strategy->place(workload_of(config));
  REQUIRE(placement.replicas.size() == 2);
  CHECK(device_names(placement.replicas[0]) == Lines{"cpu:0", "cpu:1"});
  CHECK(device_names(placement.replicas[1]) == Lines{"cpu:2", "cpu:3"});
  CHECK(placement.schedule == PipelineSchedule::gpipe);
  CHECK(places(config)[2] == "start cpu:0 cpu:2");
  CHECK(places(config)[7] == "sum cpu:1 cpu:3");
}

TEST_CASE("pipeline: stages: auto uses estimates, not measurements, in deterministic runs") {
  const RunConfig config =
      run_with("{pipeline: {devices: [cpu:0, cpu:1, cpu:2], stages: auto}}", {"train.deterministic=true"});
  const Placement estimated = config.strategy->place(workload_of(config));
  CHECK(plan_of(config).config.strategy.resolved.to_yaml() ==
        config.strategy->settled(config.graph, estimated).to_yaml());
}

TEST_CASE("pipeline: the choices of stages: auto are written to config.yaml and kept") {
  for (const int stages : {1, 2, 3, 10}) {
    CAPTURE(stages);
    std::string devices;
    for (int i = 0; i < stages; ++i) devices += fmt::format("{}cpu:{}", i > 0 ? ", " : "", i);
    RunConfig config = run_with(fmt::format("{{pipeline: {{devices: [{}], stages: auto}}}}", devices));
    const RunConfig asked = config;
    for (const bool settled : {false, true}) {
      CAPTURE(settled);
      if (settled) {
        const RunPlan plan = plan_of(config);
        config = plan.config;
        CHECK(places(config, plan.placement) == places(config));
      }
      std::vector<int> layers(static_cast<size_t>(stages), 0);
      const Placement placement = config.strategy->place(workload_of(config));
      for (size_t i = config.graph.inputs.size(); i < config.graph.nodes.size(); ++i)
        ++layers[placement.slots.empty() ? 0 : static_cast<size_t>(placement.slots[i])];
      for (const int of_stage : layers) CHECK(of_stage > 0);
    }
    const Lines chosen = places(config);
    const std::string yaml = config.resolved.to_yaml();
    CHECK(yaml.find("stages: auto") == std::string::npos);
    CHECK(places(config_from(yaml)) == chosen);
    CHECK(plan_of(config).config.resolved.to_yaml() == yaml);

    // A resumed run keeps the stages that it has chosen itself, even if its configuration file still says
    // `stages: auto` and dtrain would now choose other stages.
    if (stages != 2) continue;
    const RunConfig saved = run_with("{pipeline: {devices: [cpu:0, cpu:1], stages: [head]}}");
    const RunConfig goes_on = keep_choices(asked, *saved.resolved.find("strategy"));
    CHECK(places(goes_on) == places(saved));
    CHECK(goes_on.resolved.to_yaml() == saved.resolved.to_yaml());
    // If the file requests another strategy, the file takes precedence.
    for (const char* other : {"{pipeline: {devices: [cpu:0, cpu:2], stages: auto}}", "single",
                              "{pipeline: {devices: [cpu:0, cpu:1], stages: [sum]}}"}) {
      const RunConfig differs = run_with(other);
      CHECK(places(keep_choices(differs, *saved.resolved.find("strategy"))) == places(differs));
    }
  }
}

TEST_CASE("sharded: each device has a replica") {
  for (const auto& [name, level] : {std::pair{"optimizer", ShardLevel::optimizer},
                                    {"gradients", ShardLevel::gradients},
                                    {"parameters", ShardLevel::parameters}}) {
    const RunConfig config =
        run_with(fmt::format("{{sharded: {{devices: [cpu:0, cpu:1, cpu:2], level: {}}}}}", name));
    const Placement placement = config.strategy->place(workload_of(config));
    CHECK(placement.sharded == level);
    REQUIRE(placement.replicas.size() == 3);
    CHECK(device_names(placement.replicas[2]) == Lines{"cpu:2"});
    CHECK(placement.slots.empty());
    CHECK(read_back(config).strategy->place(workload_of(config)).sharded == level);
  }
}

TEST_CASE("mirrored and single place whole models, unsharded") {
  CHECK(run_with("single").strategy->place({.graph = Graph()}).replicas.size() == 1);
  const Placement placement =
      run_with("{mirrored: {devices: [cpu:0, cpu:1], replicas: 3}}").strategy->place({.graph = Graph()});
  CHECK(device_names(placement.devices()) == Lines{"cpu:0", "cpu:1", "cpu:0"});
  CHECK(placement.sharded == ShardLevel::none);
}

TEST_CASE("shared weights are trained as one array, which a checkpoint contains once") {
  const std::string shared = R"(
seed: 3
model:
  inputs: {x: [6]}
  layers:
    - dense: {units: 6, activation: tanh, name: a}
    - dense: {name: b, shared_with: a}
    - dense: {name: c, shared_with: a}
    - dense: {units: 3, name: head}
dataset: {train: {synthetic: {samples: 60, target: {classes: 3}}}}
strategy: {single: {device: cpu:0}}
train:
  epochs: 5
  batch_size: 16
  loss: {sparse_categorical_crossentropy: {from_logits: true}}
  optimizer: {adam: {learning_rate: 0.01}}
)";
  const std::vector<double> single = losses_of(shared);
  CHECK(single.back() < single.front());
  const std::vector<double> mirrored =
      losses_of(shared, {"strategy={mirrored: {devices: [cpu:0, cpu:1], replicas: 3}}"});
  REQUIRE(mirrored.size() == single.size());
  for (size_t i = 0; i < single.size(); ++i) CHECK(mirrored[i] == doctest::Approx(single[i]).epsilon(1e-4));
  // In groups, shared weights have the name of their first layer. A group applies to all layers that share
  // the weights.
  const std::vector<double> frozen = losses_of(shared, {"train.groups=[{weights: a/*, trainable: false}]"});
  CHECK(frozen != single);
  CHECK_THROWS_WITH_AS(losses_of(shared, {"train.groups=[{weights: b/*, trainable: false}]"}),
                       doctest::Contains("the pattern 'b/*' matches no trained weight"), UserError);

  const TempDir directory;
  const RunDirectory run(directory / "run");
  Recorder recorder;
  std::vector<float> trained;
  {
    Trainer trainer(plan_from(shared), run, recorder, recorder.requests);
    trainer.start();
    trainer.run();
    trained = arrays_of(trainer);
  }
  const Checkpoint checkpoint = Checkpoint::load(run.checkpoints().back());
  CHECK(checkpoint.content().layers.size() == 3);  // input, a, head
  CHECK(checkpoint.weight("a/kernel") != nullptr);
  CHECK(checkpoint.weight("b/kernel") == nullptr);
  Trainer again(plan_from(shared, {"train.epochs=6"}), run, recorder, recorder.requests);
  again.restore(checkpoint);
  CHECK(arrays_of(again) == trained);
}
