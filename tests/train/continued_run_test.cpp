// Tests runs that continue from a checkpoint, in their own directory or in another directory.
#include "train/continued_run.h"

#include "support/runs.h"

using namespace dtrain;
using namespace dtrain::test;

namespace {

/// Options of a run of three epochs. The best epoch is the epoch with the largest loss. Because the loss
/// decreases, this is the first epoch.
const std::vector<std::string> kSets{"train.epochs=3", "checkpoint.best={monitor: loss, mode: max}"};

/// Trains a run to its end and returns its last checkpoint.
Checkpoint finish(const RunDirectory& run) {
  Recorder recorder;
  Trainer trainer(plan_from(kDenseRun, kSets), run, recorder, recorder.requests);
  trainer.start();
  trainer.run();
  REQUIRE(trainer.state().best);
  REQUIRE(trainer.state().best->step < trainer.state().step);
  return load_newest(run, [](const std::string&) {}).value();
}

}  // namespace

TEST_CASE("a run that continues in another directory copies its checkpoint and the best one") {
  const TempDir directory;
  const RunDirectory first(directory / "first"), next(directory / "next");
  const Checkpoint newest = finish(first);
  for (const bool best_exists : {true, false}) {
    CAPTURE(best_exists);
    Recorder recorder;
    RunConfig config = config_to_continue(saved_config(newest, {"train.epochs=4"}), newest);
    Trainer trainer(plan_of(std::move(config)), next, recorder, recorder.requests);
    trainer.restore(newest);
    const int64_t best = trainer.state().best->step;
    std::filesystem::create_directories(next.checkpoint_directory());
    if (!best_exists) {
      std::filesystem::remove(first.checkpoint_path(best));
      std::filesystem::remove(next.checkpoint_path(best));
    }
    bring_checkpoints(next, newest, trainer, recorder);
    CHECK(next.has_checkpoint(trainer.state().step));
    CHECK(next.has_checkpoint(best) == best_exists);
    CHECK(trainer.state().best.has_value() == best_exists);
    CHECK(recorder.warnings.size() == (best_exists ? 0 : 1));
  }
}

TEST_CASE("a run that continues keeps the facts of its training split") {
  const TempDir directory;
  const Checkpoint newest = finish(RunDirectory(directory / "run"));
  const RunConfig config = config_to_continue(config_from(kDenseRun), newest);
  CHECK(config.dataset.facts.to_json().dump() == saved_facts(newest).to_json().dump());
}

TEST_CASE("a run with no epochs left reports that nothing is left to train") {
  const RunConfig config = config_from(kDenseRun, kSets);
  TrainingState state;
  state.epoch = 2;
  CHECK(explain_end(state, config) == "");
  state.epoch = 3;
  CHECK(explain_end(state, config) ==
        "nothing left to train: 3 of 3 epochs done; use --epochs N to train more epochs");
  state.stopped = true;
  state.stop_reason = "early stopping";
  CHECK(explain_end(state, config)
            .starts_with("nothing left to train: a callback ended the run after 3 epochs (early stopping). "
                         "To continue"));
}
