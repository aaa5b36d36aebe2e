// How much a GPU is given for a step: what it costs beside the arithmetic.
#include "emulation/emulation.h"
#include "train/runs.h"

using namespace dtrain;
using namespace dtrain::testing;
using emulation::Counts;

namespace {

/// Keeps what the last step was given.
class Counter final : public Recorder {
 public:
  void on_step(const Progress& progress) override {
    Recorder::on_step(progress);
    // None is given while the last steps are waited for.
    if (const Counts counts = emulation::take_counts(); counts.launches > 0) last = counts;
  }
  Counts last;
};

/// Of a step that is replayed.
Counts counts_of(const RunConfig& config) {
  const ScratchDirectory directory;
  Counter counter;
  Trainer trainer(config, RunDirectory(directory / "run"), counter, counter.requests);
  trainer.start();
  trainer.run();
  REQUIRE(counter.losses.size() > 4);
  REQUIRE(counter.last.launches > 0);
  return counter.last;
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("sums over GPUs go ahead of other kernels, in captured steps too") {
    if (gpu_presence().count < 2) return;
    const Counts counts =
        counts_of(config_from(kDenseRun, {"strategy={mirrored: {devices: ['gpu:0', 'gpu:1']}}"}));
    CHECK(counts.urgent > 0);
    CHECK(counts.urgent < counts.nodes);
  }
}
