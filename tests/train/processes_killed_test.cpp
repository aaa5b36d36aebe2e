// Tests runs in which one of two processes is killed. The transport of the other process then never returns.
// Open MPI's TCP transport behaves in this way.
#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "process_runs.h"

using namespace dtrain;
using namespace dtrain::test;

namespace {

constexpr auto kMessage = "another process: it was killed";

const std::vector<std::string> kSpread{"optimizer", "gradients", "parameters", "divided stages"};

/// Trains in two processes, of which process 1 is killed at step 4. Returns the warnings of process 0.
std::vector<std::string> kill_in_step(const std::string& strategy) {
  const TempDir directory;
  std::vector<std::string> warnings;
  const RunConfig config = config_of(kRun, {"checkpoint.every=1000 steps"}, 1, strategy);
  const RunDirectory run(directory / "run");
  Processes processes(2, AfterFailure::never_returns);
  const auto work = [&](World& world) {
    struct Killed final : Recorder {
      explicit Killed(bool at_step_4) : at_step_4_(at_step_4) {}
      void on_step(const Progress& progress) override {
        if (at_step_4_ && progress.global_step == 4) throw Error("it was killed");
      }
      bool at_step_4_;
    };
    Killed recorder(world.rank() == 1);
    Trainer trainer(plan_on_one_core(config, world), run, recorder, recorder.requests);
    trainer.start();
    if (world.rank() == 1) return trainer.run();
    CHECK_THROWS_WITH_AS(trainer.run(), kMessage, ProcessFailed);
    CHECK_FALSE(processes.has_ended(0));  // process 0 must not end before it has saved
    warnings = recorder.warnings;
    if (is_spread(strategy))
      CHECK(run.checkpoints().empty());
    else
      CHECK(run.checkpoints() == std::vector<std::string>{run.checkpoint_path(trainer.state().step)});
  };
  CHECK_THROWS_WITH_AS(processes.run(work), "it was killed", Error);
  return warnings;
}

}  // namespace

TEST_CASE("if a process is killed in a step, process 0 saves the last step, although MPI never returns") {
  kill_in_step("mirrored");
  kill_in_step("two stages");
  for (const std::string& strategy : kSpread) {
    CAPTURE(strategy);
    const std::vector<std::string> warnings = kill_in_step(strategy);
    CHECK(std::any_of(warnings.begin(), warnings.end(), [](const std::string& warning) {
      return warning.find("other processes have parts of the optimizer state") != std::string::npos;
    }));
  }
}

TEST_CASE("if a process is killed before the first step, the other one ends, although MPI never returns") {
  for (const std::string strategy : {"mirrored", "optimizer", "divided stages"}) {
    CAPTURE(strategy);
    const TempDir directory;
    const RunConfig config = config_of(kRun, {}, 1, strategy);
    Processes processes(2, AfterFailure::never_returns);
    const auto work = [&](World& world) {
      Recorder recorder;
      const auto start = [&] {
        RunPlan plan = plan_on_one_core(config, world);
        if (world.rank() == 1) throw Error("it was killed");
        Trainer(std::move(plan), RunDirectory(directory / "run"), recorder, recorder.requests).start();
      };
      if (world.rank() == 1) return start();
      CHECK_THROWS_WITH_AS(start(), kMessage, ProcessFailed);
    };
    CHECK_THROWS_WITH_AS(processes.run(work), "it was killed", Error);
  }
}

TEST_CASE(
    "if a process is killed while it sends its part of the state, the other one ends, although MPI "
    "never returns") {
  for (const std::string& strategy : kSpread) {
    CAPTURE(strategy);
    const TempDir directory;
    const RunConfig config = config_of(kRun, {"checkpoint.every=4 steps"}, 1, strategy);
    const RunDirectory run(directory / "run");
    Processes processes(2, AfterFailure::never_returns);
    processes.transport(1).on_send([&](std::span<const std::byte> bytes) {
      // A longer message is a part of the state; shorter messages are agreements among the processes.
      const bool is_state = bytes.size() > 64;
      if (!is_state || std::string_view(processes.world(1).position().phase) != "saving") return;
      processes.fail(1, "it was killed");
      throw Error("it was killed");
    });
    const auto work = [&](World& world) {
      Recorder recorder;
      Trainer trainer(plan_on_one_core(config, world), run, recorder, recorder.requests);
      trainer.start();
      if (world.rank() == 1) return trainer.run();
      CHECK_THROWS_WITH_AS(trainer.run(), kMessage, ProcessFailed);
      CHECK(trainer.state().step == 4);
      CHECK(run.checkpoints().empty());
      CHECK_FALSE(processes.has_ended(0));
    };
    CHECK_THROWS_WITH_AS(processes.run(work), "it was killed", ProcessFailed);
    CHECK(processes.has_ended(0));  // process 0 must end before the memory of the engine is freed
  }
}
