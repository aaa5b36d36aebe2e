// Batches that are cut to the length of their longest sample, on emulated GPUs. The batches are uploaded from
// the host, or gathered from device memory, or their steps are replayed with CUDA graphs.
#include <cmath>

#include "emulation/emulation.h"
#include "train/ragged_rows.h"

using namespace dtrain;
using namespace dtrain::test;

TEST_SUITE("gpu") {
  TEST_CASE("batches that are cut give the same losses as whole batches on a CPU") {
    if (gpu_presence().count < 2) return;
    const TempDir directory;
    const std::string yaml = run_of(directory, rows_of({4, 7, 0, 3, 12, 9, 5, 16, 1, 20, 8, 16, 2, 3}), 20);
    const std::vector<std::string> sets = {
        "model.layers=[{embedding: {input_dim: 9, output_dim: 8, mask_zero: true}}, {dense: {units: 8, "
        "activation: tanh}}, {dense: {units: 3}}]",
        "train.optimizer={sgd: {learning_rate: 0.3}}", "train.batch_size=4"};
    const auto losses_with = [&](const std::vector<std::string>& more) {
      std::vector<std::string> all = sets;
      all.insert(all.end(), more.begin(), more.end());
      return losses_of(yaml, all);
    };
    const std::vector<double> expected = losses_with({"strategy={single: {device: 'cpu:0'}}"});
    for (const std::string strategy :
         {"{single: {device: 'gpu:0'}}", "{mirrored: {devices: ['gpu:0', 'gpu:1']}}"})
      for (const std::string cache : {"none", "device"}) {
        CAPTURE(strategy);
        CAPTURE(cache);
        const std::vector<double> found = losses_with(
            {"dataset.batches={bucket_by_length: true}", "strategy=" + strategy, "dataset.cache=" + cache});
        REQUIRE(found.size() == expected.size());
        for (size_t i = 0; i < found.size(); ++i)
          CHECK(found[i] == doctest::Approx(expected[i]).epsilon(1e-5));
      }
  }
}
