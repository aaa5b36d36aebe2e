// Pipelines with several replicas on GPUs: when they load kernels.
#include <cuda_runtime.h>

#include "emulation/emulation.h"
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
  TEST_CASE("replicated pipelines load the kernels of the update while no reduction runs") {
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
}
