// Pipelines with several replicas on GPUs, in one process or in two processes. They must not load kernels
// while a reduction runs.
#include <cuda_runtime.h>

#include "emulation/emulation.h"
#include "support/processes.h"
#include "support/runs.h"

using namespace dtrain;
using namespace dtrain::test;

namespace {

struct FourGpus {
  explicit FourGpus(uint64_t seed) {
    REQUIRE(emulation::restart({.devices = 4, .seed = seed}) == "");
    emulation::unload_kernels();
  }
  ~FourGpus() {
    CHECK(emulation::restart({}) == "");
    cudaSetDevice(0);
  }
  FourGpus(const FourGpus&) = delete;
  FourGpus& operator=(const FourGpus&) = delete;
};

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("replicated pipelines load the kernels of the update when no reduction runs") {
    const std::vector<double> alone = losses_of(kDenseRun, {"strategy=single", "train.epochs=3"});
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      const FourGpus gpus(seed);
      const std::vector<double> losses =
          losses_of(kDenseRun, {"strategy={pipeline: {devices: ['gpu:0', 'gpu:1', 'gpu:2', 'gpu:3'], "
                                "replicas: 2}}",
                                "train.epochs=3", "train.clip_norm=100"});
      REQUIRE(losses.size() == alone.size());
      for (size_t i = 0; i < losses.size(); ++i) CHECK(losses[i] == doctest::Approx(alone[i]).epsilon(1e-5));
    }
  }

  TEST_CASE("two processes with a pipeline on two GPUs each give the same losses as one device") {
    const std::vector<std::vector<std::string>> options{
        {}, {"train.clip_norm=0.1"}, {"train.class_weight={0: 0.3, 2: 4}"}};
    for (std::vector<std::string> sets : options) {
      sets.insert(sets.begin(), {"strategy=single", "train.epochs=3"});
      CAPTURE(sets.back());
      const std::vector<double> alone = losses_of(kDenseRun, sets);
      const FourGpus gpus(1);
      const TempDir directory;
      std::vector<std::vector<double>> losses(2);
      Processes processes(2);
      std::vector<RunConfig> configs;
      for (const char* devices : {"'gpu:0', 'gpu:1'", "'gpu:2', 'gpu:3'"}) {
        sets[0] = std::string("strategy={pipeline: {devices: [") + devices +
                  "], stages: [dense_1], microbatches: 2}}";
        configs.push_back(config_from(kDenseRun, sets));
      }
      processes.run([&](World& world) {
        const auto rank = static_cast<size_t>(world.rank());
        Recorder recorder;
        Trainer trainer(plan_training(configs[rank], world), RunDirectory(directory / "run"), recorder,
                        recorder.requests);
        trainer.start();
        trainer.run();
        losses[rank] = recorder.losses;
      });
      for (const std::vector<double>& its : losses) {
        REQUIRE(its.size() == alone.size());
        for (size_t i = 0; i < its.size(); ++i) CHECK(its[i] == doctest::Approx(alone[i]).epsilon(1e-5));
      }
    }
  }
}
