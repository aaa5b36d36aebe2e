// Several GPUs of one process that wait for each other forever, as NCCL's documentation warns of.
#include <chrono>

#include "device/device.h"
#include "emulation/emulation.h"
#include "train/runs.h"

using namespace dtrain;
using namespace dtrain::testing;

namespace {

/// Lets GPU 1's launches not return any more, behind the step numbered `from`.
class Blocks final : public Recorder {
 public:
  explicit Blocks(int64_t from) : from_(from) {}
  ~Blocks() override { emulation::block_graph_launches(-1); }
  void on_step(const Progress& progress) override {
    Recorder::on_step(progress);
    if (progress.global_step == from_) emulation::block_graph_launches(1);
  }

 private:
  int64_t from_;
};

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("a step in which GPUs stand still ends the run, and says where and what to do") {
    if (gpu_presence().count < 2) return;
    const std::vector<std::string> sets{"strategy={mirrored: {devices: ['gpu:0', 'gpu:1']}}",
                                        "train.step_timeout=1 second"};
    const ScratchDirectory directory;
    Blocks recorder(12);
    Trainer trainer(config_from(kDenseRun, sets), RunDirectory(directory / "run"), recorder,
                    recorder.requests);
    trainer.start();
    const auto begin = std::chrono::steady_clock::now();
    CHECK_THROWS_WITH_AS(trainer.run(), doctest::Contains("gpu:1: nothing has moved for 1 second at step 1"),
                         Error);
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
    CHECK(recorder.losses.size() >= 12);
    CHECK(recorder.losses.size() <= 14);
  }
}
