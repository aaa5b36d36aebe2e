// Tests runs in which one of several processes fails.
#include <algorithm>
#include <string>
#include <vector>

#include "process_runs.h"

using namespace dtrain;
using namespace dtrain::test;

namespace {

/// Trains in two processes, of which process 1 fails at step 4. Returns the warnings of process 0.
std::vector<std::string> check_failure(const std::string& strategy) {
  const TempDir directory;
  std::vector<std::string> warnings;
  const RunConfig config = config_of(kRun, {"checkpoint.every=1000 steps"}, 1, strategy);
  const RunDirectory run(directory / "run");
  int64_t step = 0;
  Processes processes(2);
  const auto work = [&](World& world) {
    struct Failing final : Recorder {
      explicit Failing(bool fails) : fails_(fails) {}
      void on_step(const Progress& progress) override {
        if (fails_ && progress.global_step == 4) throw Error("the disk failed");
      }
      bool fails_;
    };
    Failing recorder(world.rank() == 1);
    Trainer trainer(plan_on_one_core(config, world), run, recorder, recorder.requests);
    trainer.start();
    if (world.rank() == 1) return trainer.run();
    CHECK_THROWS_WITH_AS(trainer.run(), "another process: the disk failed", ProcessFailed);
    step = trainer.state().step;
    warnings = recorder.warnings;
    if (is_spread(strategy))
      CHECK(run.checkpoints().empty());
    else
      CHECK(run.checkpoints() == std::vector<std::string>{run.checkpoint_path(step)});
  };
  CHECK_THROWS_WITH_AS(processes.run(work), "the disk failed", Error);
  CHECK((step == 3 || step == 4));  // process 0 may still wait for sums of step 4
  return warnings;
}

}  // namespace

TEST_CASE("if a process fails, the others end, and process 0 saves the last step") {
  check_failure("mirrored");
  check_failure("two stages");
}

TEST_CASE("if a process with parts of the state fails, the last step is not saved, and a warning says so") {
  for (const std::string strategy : {"optimizer", "gradients", "parameters", "divided stages"}) {
    CAPTURE(strategy);
    const std::vector<std::string> warnings = check_failure(strategy);
    CHECK(std::any_of(warnings.begin(), warnings.end(), [](const std::string& warning) {
      return warning.find("other processes have parts of the optimizer state") != std::string::npos;
    }));
  }
}
