// The strategies that fit on a machine, and their estimated speed.
#include "estimate/what_fits.h"

#include <cmath>

#include "distribute/largest_batch.h"
#include "engine/engine.h"
#include "estimate/pipeline_estimate.h"
#include "estimate/step_estimate.h"
#include "support/runs.h"

using namespace dtrain;
using namespace dtrain::test;

namespace {

/// Returns a run whose model has eight identical blocks of two dense layers, followed by a dense layer.
RunConfig blocks(const std::vector<std::string>& sets = {}) {
  return config_from(R"(
model:
  inputs: {x: [64]}
  blocks:
    wide: {layers: [{dense: {units: 64, activation: tanh}}, {dense: {units: 64, activation: tanh}}]}
  layers: [{wide: {repeat: 8}}, {dense: {units: 4}}]
dataset: {train: {synthetic: {samples: 512, target: {classes: 4}}}}
strategy: {single: {device: cpu:0}}
train:
  batch_size: 256
  loss: {sparse_categorical_crossentropy: {from_logits: true}}
  optimizer: adam
)",
                     sets);
}

Machine gpus(int count, double megabytes) {
  return {.kind = DeviceId::Kind::gpu,
          .devices = count,
          .bytes = static_cast<int64_t>(megabytes * 1e6),
          .link = 2.5e10};
}

const Candidate& named(const std::vector<Candidate>& candidates, const std::string& name) {
  for (const Candidate& candidate : candidates)
    if (candidate.name == name) return candidate;
  FAIL("no candidate " << name);
  return candidates.front();
}

}  // namespace

TEST_CASE("the largest batch that fits is found with only a few plans") {
  for (const int64_t fits : {0, 1, 2, 7, 500, 99'999}) {
    CAPTURE(fits);
    int asked = 0;
    const auto excess_of = [&](int64_t batch) {
      ++asked;
      return 10.0 * static_cast<double>(batch - fits) - 5;
    };
    CHECK(largest_batch(excess_of, 100'000, excess_of(100'000)) == fits);
    CHECK(asked < 10);
  }
  // The memory may grow in steps as the batch size grows.
  const auto steps = [](int64_t batch) { return std::ceil(static_cast<double>(batch) / 64) * 64 - 640.5; };
  CHECK(largest_batch(steps, 5000, steps(5000)) == 640);
  CHECK(largest_batch(steps, 1, 3) == 0);
}

TEST_CASE(
    "the time of a stage is the sum of the times of its layers, and copies to the next stage are added") {
  RunConfig config =
      blocks({"strategy={pipeline: {devices: [cpu:0, cpu:1], stages: [wide_4], "
              "microbatches: 4}}"});
  const Placement placement = plan_run(config, single_process()).placement;
  PipelineWork work = pipeline_work(config, placement, 256);
  CHECK(work.samples == 64);
  CHECK(work.microbatches == 4);
  CHECK(work.slot_bytes == 8);  // Adam's two slots
  work.seconds_per_byte = 1e-6;
  std::vector<PipelineDevice> devices = pipeline_devices(placement);
  REQUIRE(devices.size() == 2);
  for (PipelineDevice& device : devices) device.seconds.assign(config.graph.nodes.size(), 3);
  const PipelineTimes times = pipeline_times(config.graph, placement.slots, devices, work);
  // Each stage has eight dense layers and eight activations, and the second stage also has the last dense
  // layer. Each of these layers takes three seconds: one forward and two backward.
  CHECK(times.stages[0].forward == doctest::Approx(16));
  CHECK(times.stages[0].backward == doctest::Approx(32));
  CHECK(times.stages[1].forward == doctest::Approx(17));
  REQUIRE(times.transfers.size() == 1);
  CHECK(times.transfers[0] == doctest::Approx(64 * 64 * 4 * 1e-6));

  for (GraphNode& node : config.graph.nodes)
    if (node.name.starts_with("wide_7/")) node.recompute = 0;
  const PipelineTimes more = pipeline_times(config.graph, placement.slots, devices, work);
  CHECK(more.stages[0].backward == times.stages[0].backward);
  CHECK(more.stages[1].forward == times.stages[1].forward);
  CHECK(more.stages[1].backward == doctest::Approx(times.stages[1].backward + 4));
}

TEST_CASE("a step's estimated time includes computation, reduction and update") {
  const auto seconds = [](const char* strategy, double link, std::vector<std::string> sets = {}) {
    sets.push_back(std::string("strategy=") + strategy);
    const RunConfig config = blocks(sets);
    Machine machine = gpus(4, 1000);
    machine.link = link;
    return estimate_step_seconds(plan_run(config, single_process()), 256, machine);
  };
  constexpr double kFast = 1e15, kSlow = 1e8;
  const std::string four = "devices: [cpu:0, cpu:1, cpu:2, cpu:3]";
  const std::string mirrored = "{mirrored: {" + four + "}}",
                    parameters = "{sharded: {" + four + ", level: parameters}}",
                    gradients = "{sharded: {" + four + ", level: gradients}}",
                    pipeline = "{pipeline: {" + four + ", stages: auto, microbatches: 16}}";
  const double single = seconds("single", kFast);
  CHECK(seconds("single", kSlow) == single);
  CHECK(seconds(mirrored.c_str(), kFast) < single);
  CHECK(seconds(mirrored.c_str(), kSlow) > single);
  // Each replica updates only a part of the parameters.
  CHECK(seconds(gradients.c_str(), kFast) < seconds(mirrored.c_str(), kFast));
  CHECK(seconds(parameters.c_str(), kSlow) > 1.3 * seconds(gradients.c_str(), kSlow));
  // With train.accumulate, a batch is computed in several parts. The pipeline is drained at the end of each
  // part, which takes time.
  const std::string few = "{pipeline: {" + four + ", stages: auto, microbatches: 4}}";
  CHECK(seconds(few.c_str(), kFast, {"train.accumulate=4"}) > 1.2 * seconds(pipeline.c_str(), kFast));
  CHECK(seconds(gradients.c_str(), kSlow, {"train.accumulate=4"}) > 2 * seconds(gradients.c_str(), kSlow));
  // The model has 66,820 parameters of 4 bytes (267 kB). A reduction over n replicas sends 2 (n - 1) / n
  // times this amount over each link. The pipeline sends only 64 kB over a link in each direction, so it is
  // faster.
  CHECK(seconds(mirrored.c_str(), kSlow) == doctest::Approx(1.5 * 4 * 66'820 / kSlow).epsilon(0.05));
  CHECK(seconds(pipeline.c_str(), kSlow) < seconds(mirrored.c_str(), kSlow));
}

TEST_CASE("strategies that fit are ranked by speed, with the memory that training plans") {
  const RunConfig config = blocks();
  Machine host{.kind = DeviceId::Kind::cpu, .devices = 4, .bytes = int64_t{1} << 40, .cores = 4, .link = 5e9};
  const std::vector<Candidate> candidates = what_fits(config, host);
  CHECK(candidates.size() >= 7);
  for (size_t i = 0; i < candidates.size(); ++i) {
    const Candidate& candidate = candidates[i];
    CAPTURE(candidate.name);
    CHECK(candidate.fits);
    CHECK(candidate.batch_size == 256);
    CHECK(candidate.recomputed.empty());
    if (i > 0) CHECK(candidate.samples_per_second() <= candidates[i - 1].samples_per_second());
    RunConfig chosen = blocks({"strategy=" + candidate.strategy.to_yaml()});
    const RunPlan run = plan_run(chosen, single_process());
    Engine engine(run);
    int64_t bytes = 0;
    for (const MemoryPlan& plan : engine.memory().plan(Plan::Purpose::training, 256))
      bytes += static_cast<int64_t>(plan.total());
    CHECK(bytes == candidate.bytes);
  }
}

TEST_CASE("on the host, the copy of a sharded state for saving must fit, too") {
  const RunConfig config = blocks();
  const std::string name = "sharded, parameters";
  Machine host{.kind = DeviceId::Kind::cpu, .devices = 2, .bytes = int64_t{1} << 40, .cores = 2, .link = 5e9};
  const Candidate all = named(what_fits(config, host), name);
  RunConfig chosen = blocks({"strategy=" + all.strategy.to_yaml()});
  const RunPlan plan = plan_run(chosen, single_process());
  const Engine engine(plan);
  REQUIRE(engine.memory().copy_bytes() > 0);
  host.bytes = all.bytes + static_cast<int64_t>(engine.memory().copy_bytes());
  CHECK(named(what_fits(config, host), name).batch_size == all.batch_size);
  --host.bytes;
  CHECK(named(what_fits(config, host), name).batch_size < all.batch_size);
}

TEST_CASE("if a batch does not fit, the batch size is reduced, or blocks are recomputed") {
  const RunConfig config = blocks({"train.batch_size=100000"});
  const std::vector<Candidate> some = what_fits(config, gpus(4, 100));
  const Candidate &single = named(some, "single"), &again = named(some, "single, recompute"),
                  &mirrored = named(some, "mirrored");
  REQUIRE(single.fits);
  CHECK(single.batch_size < 100'000);
  CHECK(single.bytes <= 100'000'000);
  CHECK(single.bytes > 99'000'000);
  CHECK(again.batch_size > single.batch_size);
  CHECK(again.recomputed.size() == 8);
  CHECK(again.recomputed.front() == "wide");
  CHECK(mirrored.batch_size > 3 * single.batch_size);
  for (const Candidate& candidate : what_fits(config, gpus(2, 1))) {
    CAPTURE(candidate.name);
    CHECK_FALSE(candidate.fits);
    CHECK(candidate.bytes > 1'000'000);
    CHECK(candidate.step_seconds == 0);
  }
  const std::vector<Candidate> one = what_fits(config, gpus(1, 100));
  REQUIRE(one.size() == 2);
  CHECK(one[0].samples_per_second() >= one[1].samples_per_second());
}

TEST_CASE("a separate activation or a layer name with a slash does not make a block that can be recomputed") {
  const RunConfig config = config_from(R"(
model:
  inputs: {x: [64]}
  layers: [dense: {units: 64, name: left/stem, activation: tanh}, dense: {units: 4}]
dataset: {train: {synthetic: {samples: 512, target: {classes: 4}}}}
strategy: {single: {device: cpu:0}}
train: {batch_size: 100000, loss: {sparse_categorical_crossentropy: {from_logits: true}}, optimizer: adam}
)");
  CHECK(what_fits(config, gpus(1, 1)).size() == 1);
}

TEST_CASE("independent branches are placed on separate devices") {
  const RunConfig config = config_from(R"(
model:
  inputs: {x: [512], y: [512]}
  layers:
    - dense: {units: 2048, activation: tanh, name: left/first, inputs: x}
    - dense: {units: 512, activation: tanh, name: left/second}
    - dense: {units: 2048, activation: tanh, name: right/first, inputs: y}
    - dense: {units: 512, activation: tanh, name: right/second}
    - concatenate: {inputs: [left/second, right/second]}
    - dense: {units: 4, name: head}
dataset: {train: {synthetic: {samples: 512, target: {classes: 4}}}}
strategy: {single: {device: cpu:0}}
train: {batch_size: 256, loss: {sparse_categorical_crossentropy: {from_logits: true}}, optimizer: adam}
)");
  const std::vector<Candidate> candidates = what_fits(config, gpus(3, 1000));
  const Candidate &placed = named(candidates, "placed"), &single = named(candidates, "single");
  const ConfigNode& layers = *placed.strategy.find("placed")->find("layers");
  CHECK(layers.entries().size() == 2);
  CHECK(layers.find("left/first")->text() == "gpu:0");
  CHECK(layers.find("right/first")->text() == "gpu:1");
  CHECK(placed.fits);
  constexpr int64_t kWorkspace = int64_t{64} << 20;  // additional workspace of each GPU
  CHECK(placed.bytes - kWorkspace < 0.6 * static_cast<double>(single.bytes - kWorkspace));
  CHECK(placed.step_seconds < 0.65 * single.step_seconds);
  for (const Candidate& candidate : what_fits(blocks(), gpus(3, 1000))) CHECK(candidate.name != "placed");
}
