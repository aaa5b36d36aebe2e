// Tests runs that are resumed with another number of processes.
#include <algorithm>
#include <string>
#include <vector>

#include "process_runs.h"

using namespace dtrain;
using namespace dtrain::test;

namespace {

void check_resuming(const std::string& strategy) {
  const TempDir directory;
  const Result whole = results_of(kRun, {}, {4}, strategy)[0];
  const std::vector<std::vector<int>> parts{{2, 2}, {1, 1, 1, 1}, {4}};
  Result last;
  for (size_t part = 0; part < parts.size(); ++part) {
    Processes processes(static_cast<int>(parts[part].size()));
    const RunDirectory run(directory / "run");
    processes.run([&](World& world) {
      const RunConfig config = config_of(kRun, {}, parts[part][static_cast<size_t>(world.rank())], strategy);
      // A request to stop in process 1 stops all processes.
      Recorder recorder(part == 0 && world.rank() == 1 ? 5 : -1);
      Trainer trainer(plan_on_one_core(config, world), run, recorder, recorder.requests);
      if (part == 0)
        trainer.start();
      else
        trainer.restore(Checkpoint::load(run.checkpoints().back()));
      if (part == 0) {
        CHECK_THROWS_AS(trainer.run(), Interrupted);
        CHECK(trainer.state().step == 5);
        return;
      }
      const Result result = result_of(trainer, recorder);
      if (world.rank() == 0) last = result;
    });
    if (part == 1) {
      CHECK(last.arrays == whole.arrays);
      CHECK(last.history == whole.history);
      CHECK(std::equal(last.losses.begin(), last.losses.end(), whole.losses.begin() + 5, whole.losses.end()));
    }
  }
  CHECK(last.arrays == whole.arrays);  // one process loads the last checkpoint of the finished run
}

}  // namespace

TEST_CASE("a run resumes on another number of processes with the same bits") {
  check_resuming("mirrored");
}

TEST_CASE("a pipeline resumes on another number of processes with the same bits") {
  check_resuming("three stages");
}

TEST_CASE("stages in several processes resume on another number of processes with the same bits") {
  check_resuming("divided stages");
}

TEST_CASE("a run with shards resumes on another number of processes with the same bits") {
  for (const std::string& level : kLevels) {
    CAPTURE(level);
    check_resuming(level);
  }
}
