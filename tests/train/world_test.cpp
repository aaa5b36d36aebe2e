// Agreement between the processes of a run. So far runs have a single process; the test simulates a second
// one.
#include <limits>

#include "run/placement.h"
#include "runs.h"

using namespace dtrain;
using namespace dtrain::testing;

namespace {

/// Returns a run of three epochs with five steps each, on one replica.
RunConfig small_run(std::vector<std::string> sets = {}) {
  sets.insert(sets.begin(),
              {"strategy={single: {device: cpu:0}}", "train.epochs=3", "checkpoint.every=2 steps"});
  return config_from(kDenseRun, sets);
}

/// A process whose peer has no replicas, and which is asked to stop after a number of agreements.
class OneOfTwo final : public World {
 public:
  OneOfTwo(int rank, int64_t agreements) : rank_(rank), agreements_(agreements) {}
  int rank() const override { return rank_; }
  int size() const override { return 2; }
  LocalRanks local_ranks(int count) override { return {0, count}; }
  void all_reduce(std::span<double>) override { ++sums; }
  int64_t all_reduce_max(int64_t mine) override { return ++agreed < agreements_ ? mine : 15; }
  void broadcast(std::span<std::byte>) override {}
  void abort() noexcept override { ++aborts; }

  int64_t agreed = 0, sums = 0, aborts = 0;

 private:
  int rank_;
  int64_t agreements_;
};

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

}  // namespace

TEST_CASE("only the first process writes files, and both train alike") {
  std::vector<double> losses[2];
  for (const int rank : {0, 1}) {
    CAPTURE(rank);
    const ScratchDirectory directory;
    const RunDirectory run(directory / "run");
    Recorder recorder;
    OneOfTwo world(rank, kNever);
    Trainer trainer(small_run(), run, recorder, recorder.requests, world);
    trainer.start();
    trainer.run();
    CHECK(world.sums == 15 + 3 * 2);  // totals of every training step and validation batch
    CHECK(world.aborts == 0);
    CHECK(run.checkpoints().empty() == (rank == 1));
    CHECK(std::filesystem::exists(directory / "run/metrics.jsonl") == (rank == 0));
    CHECK(std::filesystem::exists(directory / "run/config.yaml") == (rank == 0));
    losses[rank] = recorder.losses;
  }
  CHECK(losses[0] == losses[1]);
  CHECK(losses[0].size() == 15);
}

TEST_CASE("a process stops when another one is asked to") {
  const ScratchDirectory directory;
  const RunDirectory run(directory / "run");
  Recorder recorder;
  OneOfTwo world(0, 10);
  Trainer trainer(small_run(), run, recorder, recorder.requests, world);
  trainer.start();
  CHECK_THROWS_AS(trainer.run(), Interrupted);
  CHECK(recorder.losses.size() < 15);
  CHECK(run.checkpoints().size() >= 1);
}

TEST_CASE("a failure is told to the other processes") {
  const ScratchDirectory directory;
  Recorder recorder;
  OneOfTwo world(0, kNever);
  RunConfig config = small_run({"strategy={mirrored: {devices: [cpu:0, cpu:1]}}"});
  Placement placement = config.strategy->place(workload_of(config));
  Replicas replicas(config, std::move(placement), world);
  replicas.allocate(Plan::Purpose::training, 8);
  replicas.initialize();
  struct Broken final : Batch {
    int64_t size() const override { return 8; }
    void read(int64_t, int64_t, std::span<const View>) const override { throw Error("on purpose"); }
  };
  CHECK_THROWS_WITH(replicas.launch(Broken(), 0, 0.1), "on purpose");
  CHECK(world.aborts >= 1);
}
