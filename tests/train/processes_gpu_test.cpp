// Tests pipelines whose stages on GPUs are divided among processes.
#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "device/device.h"
#include "process_runs.h"

using namespace dtrain;
using namespace dtrain::test;

namespace {

/// Returns the second GPU of the machine. If the machine has only one GPU, returns this GPU.
std::string second_gpu() {
  return gpu_presence().count > 1 ? "gpu:1" : "gpu:0";
}

/// Returns the overrides for a pipeline whose stages are divided among the processes. `devices` lists the
/// devices of all stages. A batch has 35 samples, but the last batch of an epoch has 33.
Sets divided_on(const std::string& devices, const std::string& starts, int microbatches, int replicas = 1) {
  return {fmt::format("strategy={{pipeline: {{devices: [{}], stages: [{}], microbatches: {}, replicas: {}, "
                      "across: processes}}}}",
                      devices, starts, microbatches, replicas),
          "train.batch_size=35", "train.deterministic=true"};
}

Sets with(Sets sets, const Sets& more) {
  sets.insert(sets.end(), more.begin(), more.end());
  return sets;
}

Sets four_stages(const Sets& more = {}) {
  const std::string second = second_gpu();
  return with(divided_on(fmt::format("gpu:0, {}, gpu:0, {}", second, second),
                         "layer_normalization, batch_normalization, second", 3),
              more);
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("stages on GPUs give the same bits however they are divided among processes") {
    check_divisions(kRun, four_stages(), {{1, 1}, {1, 1, 1}, {1, 1, 1, 1}}, "divided stages");
  }

  TEST_CASE("training options give the same bits with stages on GPUs in several processes") {
    for (const Sets& sets : std::vector<Sets>{
             {"train.accumulate=2", "train.clip_norm=0.05"},
             {"strategy.pipeline.schedule=gpipe", "train.class_weight={0: 0.3, 3: 4}"},
             {"train.optimizer={lamb: {learning_rate: 0.01, weight_decay: 0.1}}", "train.clip_norm=0.5"},
             {"model.layers.0.dense.kernel_regularizer={l2: 0.01}",
              "train.callbacks=[{ema: {decay: 0.9}}]"}}) {
      CAPTURE(sets[0]);
      check_divisions(kRun, four_stages(sets), {{1, 1}}, "divided stages");
    }
  }

  TEST_CASE("replicas with stages on GPUs give the same bits however these are divided among processes") {
    const std::string second = second_gpu();
    // Both replicas of a stage are on one GPU.
    const Sets sets =
        divided_on(fmt::format("gpu:0, {0}, gpu:0, gpu:0, {0}, gpu:0", second), "dropout, second", 2, 2);
    check_divisions(kRun, with(sets, {"train.clip_norm=0.05"}), {{1, 1}, {1, 1, 1}}, "divided replicas");
    check_divisions(kMasked,
                    {fmt::format("strategy={{pipeline: {{devices: [gpu:0, {}], stages: [lstm], microbatches: "
                                 "2, across: processes}}}}",
                                 second),
                     "train.deterministic=true"},
                    {{1, 1}}, "divided stages");
  }

  TEST_CASE("stages on GPUs and on CPUs give the same results however they are divided among processes") {
    const auto on = [](const std::string& devices) {
      return divided_on(devices, "layer_normalization, batch_normalization, second", 3, 1);
    };
    check_divisions(kRun, on("gpu:0, cpu:0, gpu:0, cpu:1"), {{1, 1}}, "divided stages");
    check_divisions(kRun, on("cpu:0, cpu:1, gpu:0, gpu:0"), {{1, 1}}, "divided stages");
    // Each process makes the plans of all stages, and assumes that the stages of the other process run on its
    // own kind of device. Therefore, the gradients differ by rounding errors.
    const Sets sets = on("gpu:0, gpu:0, cpu:0, cpu:1");
    const Result whole = results_of(kRun, sets, {4}, "divided stages")[0];
    for (const Result& result : results_of(kRun, sets, {1, 1}, "divided stages")) {
      REQUIRE(result.losses.size() == whole.losses.size());
      for (size_t step = 0; step < whole.losses.size(); ++step)
        CHECK(result.losses[step] == doctest::Approx(whole.losses[step]).epsilon(1e-6));
    }
  }

  TEST_CASE("a run whose stages are on GPUs continues with another number of processes") {
    const TempDir directory;
    const RunConfig config = config_of(kRun, four_stages(), 1, "divided stages");
    const auto train = [&](const std::string& name, int count, int64_t stop_after) {
      std::vector<float> arrays;
      Processes processes(count);
      const RunDirectory run(directory / name);
      const auto newest = load_newest(run, [](const std::string&) {});
      processes.run([&](World& world) {
        Recorder recorder(world.rank() == 0 ? stop_after : -1);
        Trainer trainer(plan_on_one_core(config, world), run, recorder, recorder.requests);
        newest ? trainer.restore(*newest) : trainer.start();
        try {
          trainer.run();
        } catch (const Interrupted&) {
          return;
        }
        std::vector<float> its;
        append_arrays(trainer, its, its);
        if (world.rank() == 0) arrays = std::move(its);
      });
      return arrays;
    };
    const std::vector<float> whole = train("whole", 2, -1);
    CHECK(!whole.empty());
    CHECK(train("continued", 2, 5).empty());
    CHECK(train("continued", 3, 7).empty());
    CHECK(train("continued", 1, -1) == whole);
  }

  TEST_CASE("the plan of a GPU's process has host memory for the values that it sends and receives") {
    const TempDir directory;
    const RunConfig config = config_of(kRun, four_stages(), 1, "divided stages");
    std::vector<std::vector<size_t>> transfers(2);
    Processes processes(2);
    processes.run([&](World& world) {
      Recorder recorder;
      Trainer trainer(plan_on_one_core(config, world), RunDirectory(directory / "run"), recorder,
                      recorder.requests);
      trainer.start();
      for (const MemoryPlan& plan : trainer.engine().memory().plan(Plan::Purpose::training, 35))
        transfers[static_cast<size_t>(world.rank())].push_back(plan.transfers);
    });
    for (const std::vector<size_t>& its : transfers) REQUIRE(its.size() == 2);
    // Only the stages 1 and 2 exchange values with the other process. For each microbatch, they exchange at
    // least 32 values of each of 12 samples, and the gradients of these values.
    CHECK(transfers[0][0] == 0);
    CHECK(transfers[0][1] >= size_t{2} * 32 * 12 * sizeof(float));
    CHECK(transfers[1][0] == transfers[0][1]);
    CHECK(transfers[1][1] == 0);
  }
}
