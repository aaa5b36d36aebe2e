// Steps with CUDA graphs, without CUDA graphs, and after CUDA has rejected a capture.
#include <algorithm>
#include <cstdlib>

#include "data/loader/loader.h"
#include "emulation/emulation.h"
#include "support/runs.h"
#include "train/outcome.h"

using namespace dtrain;
using namespace dtrain::test;

namespace {

const std::string kTwoGpus = "strategy={mirrored: {devices: ['gpu:0', 'gpu:1'], bucket_megabytes: 0.001}}";

struct Run {
  std::vector<double> losses;
  std::vector<std::string> refusals;  // rejections reported to the user
  emulation::Counts counts;
};

/// Trains a few epochs on two GPUs. In training and in validation, the last batch is smaller than the other
/// batches.
Run run_on_two_gpus(const std::string& set) {
  emulation::take_counts();
  const TempDir directory;
  Recorder recorder;
  Trainer trainer(plan_from(kDenseRun, {kTwoGpus, "train.epochs=4", "dataset.train.synthetic.samples=42",
                                        "model.layers.0.dense.units=200", set}),
                  RunDirectory(directory / "run"), recorder, recorder.requests);
  trainer.start();
  trainer.run();
  Run run{recorder.losses, {}, emulation::take_counts()};
  for (const std::string& note : recorder.notes)
    if (note.find("cannot capture") != note.npos) run.refusals.push_back(note);
  return run;
}

/// For the lifetime of the object, GPU 1 rejects captures after `after` calls of a step.
struct Refusing {
  explicit Refusing(size_t after) { emulation::reject_capture(1, after); }
  ~Refusing() { emulation::reject_capture(-1); }
  Refusing(const Refusing&) = delete;
  Refusing& operator=(const Refusing&) = delete;
};

struct WithoutGraphs {
  WithoutGraphs() { setenv("DTRAIN_CUDA_GRAPHS", "0", 1); }
  ~WithoutGraphs() { unsetenv("DTRAIN_CUDA_GRAPHS"); }
  WithoutGraphs(const WithoutGraphs&) = delete;
  WithoutGraphs& operator=(const WithoutGraphs&) = delete;
};

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("if one GPU rejects a capture, all GPUs continue without graphs and give the same losses") {
    if (gpu_presence().count < 2) return;
    for (const std::string set : {"train.accumulate=1", "train.accumulate=3"}) {
      CAPTURE(set);
      const Run captured = run_on_two_gpus(set);
      CHECK(captured.counts.launches > 0);
      CHECK(captured.refusals.empty());
      // The first rejection is before the first reduction, the second is between two reductions.
      for (const size_t after : {0, 20}) {
        CAPTURE(after);
        const Refusing refusing(after);
        const Run refused = run_on_two_gpus(set);
        CHECK(refused.losses == captured.losses);
        CHECK(refused.counts.launches < captured.counts.launches / 2);
        REQUIRE(!refused.refusals.empty());
        CHECK(refused.refusals[0].find("gpu:1: CUDA cannot capture training steps of 8 samples") == 0);
        CHECK(refused.refusals[0].find("CUDA error 901,") != std::string::npos);
      }
    }
  }

  TEST_CASE("DTRAIN_CUDA_GRAPHS=0 gives the same losses without graphs") {
    if (gpu_presence().count < 2) return;
    const Run captured = run_on_two_gpus("train.accumulate=1");
    const WithoutGraphs without;
    const Run plain = run_on_two_gpus("train.accumulate=1");
    CHECK(plain.losses == captured.losses);
    CHECK(plain.counts.launches == 0);
    CHECK(plain.refusals.empty());
  }

  TEST_CASE("predictions of the same batch size allocate memory only once, in 16 bits too") {
    if (gpu_presence().count < 2) return;
    for (const std::string strategy :
         {"strategy={single: {device: 'gpu:0'}}",
          "strategy={sharded: {devices: ['gpu:0', 'gpu:1'], level: parameters}}"}) {
      CAPTURE(strategy);
      const TempDir directory;
      Recorder recorder;
      Trainer trainer(plan_from(kDenseRun, {strategy, "train.precision=mixed_bfloat16"}),
                      RunDirectory(directory / "run"), recorder, recorder.requests);
      trainer.start();
      const std::vector<float> first = predictions_of(trainer, 12);
      emulation::take_counts();
      CHECK(predictions_of(trainer, 12) == first);
      CHECK(emulation::take_counts().allocations == 0);
    }
  }

  TEST_CASE("replayed evaluation steps read the requested data set") {
    const RunConfig config = config_from(
        kDenseRun, {"strategy={single: {device: 'gpu:0'}}", "dataset.cache=device",
                    "dataset.train.synthetic.samples=8", "dataset.validation.synthetic.samples=8"});
    const RunPlan run = plan_of(config);
    Engine engine(run);
    engine.allocate(Plan::Purpose::evaluation, 8);
    engine.initialize();
    std::vector<std::vector<double>> first;
    const auto train = open_loader(config, *config.dataset.train, false, true);
    const auto validation = open_loader(config, *config.dataset.validation, false, false);
    for (int round = 0; round < 4; ++round) {
      std::vector<std::vector<double>> sums;
      for (Loader* loader : {train.get(), validation.get()}) {
        loader->begin(0, 0);
        sums.push_back(engine.evaluate(*loader->next()).sums);
      }
      CHECK(sums[0] != sums[1]);
      if (round == 0) first = sums;
      CHECK(sums == first);
    }
  }
}
