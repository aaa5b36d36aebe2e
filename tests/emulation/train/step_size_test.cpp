// The amount of work that is enqueued per step. This determines the time that a step takes in addition to its
// arithmetic.
#include <cuda_runtime.h>

#include "config/load/load.h"
#include "emulation/emulation.h"
#include "support/runs.h"
#include "support/source_dir.h"

using namespace dtrain;
using namespace dtrain::test;
using emulation::Counts;

namespace {

/// Records the counts of the last step.
class Counter final : public Recorder {
 public:
  void on_step(const Progress& progress) override {
    Recorder::on_step(progress);
    // When the run waits for the last steps, nothing is launched.
    if (const Counts counts = emulation::take_counts(); counts.launches > 0) last = counts;
  }
  Counts last;
};

/// Returns the counts of a replayed step.
Counts counts_of(const RunConfig& config) {
  const TempDir directory;
  Counter counter;
  Trainer trainer(plan_of(config), RunDirectory(directory / "run"), counter, counter.requests);
  trainer.start();
  trainer.run();
  REQUIRE(counter.losses.size() > 4);
  REQUIRE(counter.last.launches > 0);
  return counter.last;
}

/// Runs a configuration from configs/ on a GPU that counts the work but does not execute it.
Counts counts_of(const std::string& name, std::vector<std::string> sets) {
  REQUIRE(emulation::restart({.computes = false}) == "");
  cudaSetDevice(0);
  Diagnostics diagnostics;
  sets.insert(sets.end(), {"strategy={single: {device: 'gpu:0'}}", "train.epochs=1", "train.callbacks=[]"});
  const ConfigNode node = load_config(test::source_dir() + "/configs/" + name + ".yaml", sets, diagnostics);
  diagnostics.throw_if_errors();
  auto config = parse_run_config(node, name, diagnostics);
  diagnostics.throw_if_errors();
  const Counts counts = counts_of(*config);
  CHECK(emulation::restart({}) == "");
  cudaSetDevice(0);
  MESSAGE(name, ": ", counts.nodes, " nodes of a graph, ", counts.calls, " calls outside it");
  return counts;
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("a training step runs only few kernels") {
    const Counts mlp = counts_of(
        "mnist-mlp", {"dataset={train: {synthetic: {samples: 640, target: {classes: 10}}}, cache: device}"});
    // Two of them are separate relu kernels, because the fused relu of cuBLASLt converts NaN to 0.
    CHECK(mlp.nodes <= 21);
    CHECK(mlp.calls == 0);
    const Counts small = counts_of(
        "resnet20", {"dataset={train: {synthetic: {samples: 24, target: {classes: 10}}}, cache: device}",
                     "train.batch_size=4"});
    CHECK(small.nodes <= 213);
    // LAMB needs the norms of all parameters. They are computed by a few kernels, each for many parameters.
    const Counts lamb = counts_of(
        "resnet20", {"dataset={train: {synthetic: {samples: 24, target: {classes: 10}}}, cache: device}",
                     "train.batch_size=4", "train.optimizer={lamb: {learning_rate: 0.001}}"});
    CHECK(lamb.nodes <= small.nodes + 4);
    const Counts large =
        counts_of("resnet50-synthetic",
                  {"dataset={train: {synthetic: {samples: 12, target: {classes: 1000}}}, cache: device}",
                   "train.batch_size=2"});
    CHECK(large.nodes <= 568);
  }

  TEST_CASE("reductions over GPUs have a higher priority than other kernels, also in captured steps") {
    if (gpu_presence().count < 2) return;
    const Counts counts =
        counts_of(config_from(kDenseRun, {"strategy={mirrored: {devices: ['gpu:0', 'gpu:1']}}"}));
    CHECK(counts.urgent > 0);
    CHECK(counts.urgent < counts.nodes);
  }
}
