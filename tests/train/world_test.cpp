// Tests the agreement of processes with a single process. Its World simulates the other processes.
#include <cstring>
#include <utility>
#include <vector>

#include "support/runs.h"

using namespace dtrain;
using namespace dtrain::test;

namespace {

/// A World of one process. Records failures.
class OneWorld : public World {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void broadcast(std::span<std::byte>) override {}
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    single_process().all_gather(mine, all);
  }
  std::unique_ptr<ProcessGather> make_gather() override { return single_process().make_gather(); }
  std::unique_ptr<ProcessMessage> make_message(int process, int channel) override {
    return single_process().make_message(process, channel);
  }
  void sum(const ReplicaRanks& ranks, std::span<const double* const> mine, std::span<double> sums) override {
    single_process().sum(ranks, mine, sums);
  }
  std::unique_ptr<BackgroundSum<float>> background_sum_of_floats(const ReplicaRanks& ranks,
                                                                 int64_t n) override {
    return single_process().background_sum_of_floats(ranks, n);
  }
  std::unique_ptr<BackgroundSum<double>> background_sum_of_doubles(const ReplicaRanks& ranks,
                                                                   int64_t n) override {
    return single_process().background_sum_of_doubles(ranks, n);
  }
  std::unique_ptr<BackgroundSum<float>> background_sum_of_parts(const ReplicaRanks& ranks,
                                                                std::vector<Range> parts) override {
    return single_process().background_sum_of_parts(ranks, std::move(parts));
  }
  void sum_parts(const ReplicaRanks&, std::vector<Range>, std::span<float* const>) override {}
  void all_gather_parts(const PartsOfProcesses&, std::span<float>) override {}
  void all_gather_parts_in_place(const PartsOfProcesses&, std::span<float>) override {}
  void gather_parts(const PartsOfProcesses&, std::span<float>) override {}
  double measure_round_trips(int, int64_t, int) override { return 0; }
  void abort(const std::string& why, bool is_user_error) noexcept override {
    failures.emplace_back(why, is_user_error);
  }
  std::string failure() const override { return ""; }

  std::vector<std::pair<std::string, bool>> failures;  // the message, and true if it is a UserError
};

/// A World that receives the slots of layers as if process 0 had sent them.
class Receiver final : public OneWorld {
 public:
  explicit Receiver(std::vector<int> sent) : sent_(std::move(sent)) {}
  void broadcast(std::span<std::byte> bytes) override {
    REQUIRE(bytes.size() == sent_.size() * sizeof(int));
    std::memcpy(bytes.data(), sent_.data(), bytes.size());
  }

 private:
  std::vector<int> sent_;
};

RunConfig small_run(std::vector<std::string> sets) {
  sets.insert(sets.begin(), {"strategy={single: {device: cpu:0}}", "train.epochs=3"});
  return config_from(kDenseRun, sets);
}

}  // namespace

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

TEST_CASE("the other processes are told why a process has failed") {
  struct Broken final : Batch {
    explicit Broken(bool wrong) : is_malformed(wrong) {}
    int64_t size() const override { return 8; }
    void read(int64_t, int64_t, std::span<const View>) const override {
      if (is_malformed) throw UserError("malformed");
      throw Error("on purpose");
    }
    bool is_malformed;
  };
  const auto fail = [](const Broken& batch) {
    OneWorld world;
    const RunPlan plan = plan_run(small_run({"strategy={mirrored: {devices: [cpu:0, cpu:1]}}"}), world);
    Engine engine(plan);
    engine.allocate(Plan::Purpose::training, 8);
    engine.initialize();
    const auto launch = [&] { engine.launch(batch, 0, 0.1); };
    if (batch.is_malformed) {
      CHECK_THROWS_WITH_AS(launch(), "malformed", UserError);
    } else {
      CHECK_THROWS_WITH_AS(launch(), "on purpose", Error);
    }
    CHECK(engine.intact());
    REQUIRE(!world.failures.empty());
    return world.failures[0];
  };
  CHECK(fail(Broken(false)) == std::pair<std::string, bool>{"on purpose", false});
  CHECK(fail(Broken(true)) == std::pair<std::string, bool>{"malformed", true});
}

TEST_CASE("a step ends between two instructions when another process fails, and the last one can be saved") {
  struct Failing final : OneWorld {
    bool other_has_failed() const noexcept override { return ++asked > at; }
    std::string failure() const override { return "node2: it was killed"; }
    int at = 1000;
    mutable int asked = 0;
  } world;
  const RunConfig config = small_run({});
  const RunPlan plan = plan_run(config, world);
  Engine engine(plan);
  engine.allocate(Plan::Purpose::training, 8);
  engine.initialize();
  const auto loader = open_loader(config, *config.dataset.train, false, true);
  loader->begin(0, 0);
  engine.launch(*loader->next(), 0, 0.1);
  engine.finish();
  const int instructions = world.asked;
  CHECK(instructions > 3);
  world.asked = 0;
  world.at = 2;
  CHECK_THROWS_WITH_AS(engine.launch(*loader->next(), 1, 0.1), "node2: it was killed", ProcessFailed);
  CHECK(world.asked == 3);
  CHECK(engine.intact());
}
