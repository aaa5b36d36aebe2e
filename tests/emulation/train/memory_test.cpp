// GPU memory that a run uses in addition to its own allocations.
#include <charconv>
#include <cuda_runtime.h>
#include <string>

#include <fmt/format.h>

#include "emulation/emulation.h"
#include "support/runs.h"

using namespace dtrain;
using namespace dtrain::test;

namespace {

/// A machine with little memory.
class SmallGpu {
 public:
  SmallGpu() {
    CHECK(emulation::restart({.devices = 1, .memory_bytes = size_t{128} << 20, .capability = 80}) == "");
  }
  ~SmallGpu() {
    CHECK(emulation::restart({}) == "");
    cudaSetDevice(0);
  }
  SmallGpu(const SmallGpu&) = delete;
  SmallGpu& operator=(const SmallGpu&) = delete;
};

constexpr auto kWide = R"(
model:
  inputs: {x: [1024]}
  blocks: {wide: {layers: [activation: gelu, activation: silu]}}
  layers: [wide: {repeat: 4}, dense: {units: 2}]
dataset: {train: {synthetic: {samples: 100000, target: {classes: 2}}}}
strategy: {single: {device: 'gpu:0'}}
train: {epochs: 1, batch_size: 100000, loss: {sparse_categorical_crossentropy: {from_logits: true}}, optimizer: sgd}
)";

int largest_batch_of(const std::string& refusal) {
  const std::string said = "the largest batch that fits is ";
  const size_t at = refusal.find(said);
  REQUIRE(at != refusal.npos);
  int batch = 0;
  std::from_chars(refusal.data() + at + said.size(), refusal.data() + refusal.size(), batch);
  return batch;
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("the largest batch that fits leaves memory for the kernels and graphs that the driver loads") {
    const SmallGpu gpu;
    std::string refusal;
    try {
      losses_of(kWide);
    } catch (const Error& error) {
      refusal = error.what();
    }
    const int batch = largest_batch_of(refusal);
    CHECK(batch > 500);
    CHECK(losses_of(kWide, {fmt::format("train.batch_size={}", batch),
                            fmt::format("dataset.train.synthetic.samples={}", 3 * batch)})
              .size() == 3);
  }
}
