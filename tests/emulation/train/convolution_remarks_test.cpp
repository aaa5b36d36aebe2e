// Messages about the computation of convolutions on a GPU.
#include <algorithm>
#include <cuda_runtime.h>

#include "emulation/emulation.h"
#include "support/runs.h"

using namespace dtrain;
using namespace dtrain::test;

namespace {

constexpr auto kConvolutions = R"(
model:
  inputs: {x: [8, 8, 3]}
  layers:
    - conv2d: {name: first, filters: 4, kernel_size: 3}
    - conv2d: {name: second, filters: 2, kernel_size: 3}
    - flatten
    - dense: {units: 3}
dataset: {train: {synthetic: {samples: 8, target: {classes: 3}}}}
strategy: {single: {device: "gpu:0"}}
train:
  epochs: 1
  batch_size: 4
  precision: mixed_bfloat16
  loss: {sparse_categorical_crossentropy: {from_logits: true}}
  optimizer: sgd
)";

struct Said {
  std::vector<std::string> warnings, notes;
};

/// Returns the messages of a run on a machine whose cuDNN supports only tensors of up to `dnn_elements`
/// elements.
Said run_with(int64_t dnn_elements) {
  REQUIRE(emulation::restart({.dnn_elements = dnn_elements}) == "");
  cudaSetDevice(0);
  Recorder recorder;
  {
    const TempDir directory;
    Trainer trainer(plan_from(kConvolutions), RunDirectory(directory / "run"), recorder, recorder.requests);
    trainer.start();
    trainer.run();
  }
  CHECK(emulation::restart({}) == "");
  cudaSetDevice(0);
  return {recorder.warnings, recorder.notes};
}

int64_t count(const std::vector<std::string>& lines, const std::string& part) {
  return std::count_if(lines.begin(), lines.end(),
                       [&](const std::string& line) { return line.find(part) != std::string::npos; });
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("a run reports slow convolutions, and the type of their gradients, once") {
    const Said plain = run_with(INT32_MAX);
    CHECK(count(plain.warnings, "engine 0") == 0);
    CHECK(count(plain.notes,
                "filter gradients of convolutions in bfloat16; set the environment variable "
                "DTRAIN_FILTER_GRADIENT=float32") == 1);
    // The first layer's input has 4 x 8 x 8 x 3 = 768 elements; all other tensors are smaller.
    const Said slow = run_with(700);
    CHECK(count(slow.warnings, "engine 0") == 1);
    CHECK(count(slow.warnings, "conv2d 'first': cuDNN has only engine 0") == 1);
  }
}
