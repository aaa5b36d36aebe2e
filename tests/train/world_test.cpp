// Agreement between the processes of a run. So far runs have a single process; the test simulates a second
// one.
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "support/runs.h"

using namespace dtrain;
using namespace dtrain::test;

namespace {

/// Returns a run of three epochs with five steps each, on one replica.
RunConfig small_run(std::vector<std::string> sets = {}) {
  sets.insert(sets.begin(),
              {"strategy={single: {device: cpu:0}}", "train.epochs=3", "checkpoint.every=2 steps"});
  return config_from(kDenseRun, sets);
}

/// A process whose peer has no replicas, and which is asked to stop after a number of agreements.
class OneOfTwo : public World {
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

/// A process that receives slots of layers from process 0.
class Receiver final : public OneOfTwo {
 public:
  explicit Receiver(std::vector<int> sent)
      : OneOfTwo(1, std::numeric_limits<int64_t>::max()), sent_(std::move(sent)) {}
  void broadcast(std::span<std::byte> bytes) override {
    REQUIRE(bytes.size() == sent_.size() * sizeof(int));
    std::memcpy(bytes.data(), sent_.data(), bytes.size());
  }

 private:
  std::vector<int> sent_;
};

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

}  // namespace

TEST_CASE("only the first process writes files, and both processes train identically") {
  std::vector<double> losses[2];
  for (const int rank : {0, 1}) {
    CAPTURE(rank);
    const TempDir directory;
    const RunDirectory run(directory / "run");
    Recorder recorder;
    OneOfTwo world(rank, kNever);
    Trainer trainer(plan_training(small_run(), world), run, recorder, recorder.requests);
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

TEST_CASE("a process stops when another process is asked to stop") {
  const TempDir directory;
  const RunDirectory run(directory / "run");
  Recorder recorder;
  OneOfTwo world(0, 10);
  Trainer trainer(plan_training(small_run(), world), run, recorder, recorder.requests);
  trainer.start();
  CHECK_THROWS_AS(trainer.run(), Interrupted);
  CHECK(recorder.losses.size() < 15);
  CHECK(run.checkpoints().size() >= 1);
}

TEST_CASE("every process uses the stages that process 0 chose by measuring") {
  const std::string model = "model.layers=[{dense: {units: 4}}, {dense: {units: 4}}, {dense: {units: 3}}]";
  const auto pipeline = [&](const std::string& stages) {
    return small_run({model, "strategy={pipeline: {devices: [cpu:0, cpu:1], stages: " + stages + "}}"});
  };
  for (const char* chosen : {"[dense_1]", "[dense_2]"}) {
    const RunPlan first = plan_of(pipeline(chosen));
    Receiver world(first.placement.slots);
    const RunPlan plan = plan_training(pipeline("auto"), world);
    CHECK(plan.placement.slots == first.placement.slots);
    CHECK(plan.config.resolved.find("strategy")->to_yaml() ==
          first.config.resolved.find("strategy")->to_yaml());
    CHECK(&plan.world == &world);
  }
}

TEST_CASE("the other processes are notified of a failure") {
  const TempDir directory;
  Recorder recorder;
  OneOfTwo world(0, kNever);
  const RunPlan plan = plan_run(small_run({"strategy={mirrored: {devices: [cpu:0, cpu:1]}}"}), world);
  Engine engine(plan);
  engine.allocate(Plan::Purpose::training, 8);
  engine.initialize();
  struct Broken final : Batch {
    int64_t size() const override { return 8; }
    void read(int64_t, int64_t, std::span<const View>) const override { throw Error("on purpose"); }
  };
  CHECK_THROWS_WITH(engine.launch(Broken(), 0, 0.1), "on purpose");
  CHECK(world.aborts >= 1);
}
