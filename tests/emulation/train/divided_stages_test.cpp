// Pipelines whose stages are on the GPUs of several processes: sums by NCCL, and failures. The processes are
// threads here.
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "emulation/other_machine.h"
#include "train/process_runs.h"

using namespace dtrain;
using namespace dtrain::test;

namespace {

const std::string kTwoStages =
    "strategy={pipeline: {devices: ['gpu:0', 'gpu:1'], stages: [dense_1], microbatches: 2, across: "
    "processes}}";

/// Calls `happens` after step 4.
class Accident final : public Recorder {
 public:
  explicit Accident(std::function<void()> happens) : happens_(std::move(happens)) {}
  void on_step(const Progress& progress) override {
    Recorder::on_step(progress);
    if (progress.global_step == 4 && happens_) happens_();
  }

 private:
  std::function<void()> happens_;
};

/// Trains in two processes with a GPU each, and calls `happens` in process 1. Checks that each process ends
/// with an error that contains the given text, and that nothing is saved.
void check_end(const std::function<void()>& happens, const std::string& error_of_0,
               const std::string& error_of_1) {
  const TempDir directory;
  const RunConfig config = config_from(kDenseRun, {kTwoStages, "checkpoint.every=1000 steps"});
  const RunDirectory run(directory / "run");
  Processes processes(2);
  processes.run([&](World& world) {
    Accident recorder(world.rank() == 1 ? happens : nullptr);
    Trainer trainer(plan_training(config, world), run, recorder, recorder.requests);
    trainer.start();
    try {
      trainer.run();
    } catch (const Error& error) {
      world.abort(error.what(), false);
      CAPTURE(world.rank());
      CHECK(std::string(error.what()).find(world.rank() == 0 ? error_of_0 : error_of_1) != std::string::npos);
      CHECK(trainer.state().step >= 3);
      return;
    }
    FAIL_CHECK("the run has not failed");
  });
  CHECK(run.checkpoints().empty());
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("NCCL sums the gradients of replicas whose stages are divided among processes") {
    const emulation::OtherMachine machine({.devices = 4});
    const Sets sets{
        "strategy={pipeline: {devices: ['gpu:0', 'gpu:1', 'gpu:2', 'gpu:3'], stages: [second], "
        "microbatches: 2, replicas: 2, across: processes}}",
        "train.batch_size=35", "train.deterministic=true"};
    for (const Sets& more :
         std::vector<Sets>{{}, {"train.clip_norm=0.05"}, {"train.class_weight={0: 0.3, 3: 4}"}}) {
      Sets all = sets;
      all.insert(all.end(), more.begin(), more.end());
      CAPTURE(all.back());
      check_divisions(kRun, all, {{1, 1}}, "divided replicas");
    }
  }

  TEST_CASE("if the GPU of a process fails, the other processes end with its message") {
    check_end([] { emulation::break_device(1); },
              "another process: gpu:1: ", "gpu:1: CUDA error 719, cudaErrorLaunchFailure");
    emulation::repair_devices();
  }

  TEST_CASE("if a process fails, the processes whose GPUs wait for it end with its message") {
    check_end([] { throw Error("the disk failed"); }, "another process: the disk failed", "the disk failed");
  }
}
