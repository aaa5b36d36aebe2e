// Tests saving: the times at which a run saves, the directories of runs, and failures of saving and of other
// parts, except failures of devices.
#include <algorithm>
#include <chrono>
#include <fstream>
#include <functional>
#include <thread>

#include <fmt/format.h>

#include "support/runs.h"

using namespace dtrain;
using namespace dtrain::test;

namespace fs = std::filesystem;

namespace {

constexpr auto kRun = kDenseRun;
constexpr int64_t kStepsPerEpoch = 5;

/// Runs an action at a given step.
class Actor : public Recorder {
 public:
  using Act = std::function<void(Actor&)>;
  Actor(int64_t step, Act act) : step_(step), act_(std::move(act)) {}
  void on_step(const Progress& progress) override {
    Recorder::on_step(progress);
    std::this_thread::sleep_for(step_time);
    if (progress.global_step == step_) act_(*this);
  }
  std::chrono::milliseconds step_time{0};  // minimum duration of a step

 private:
  int64_t step_;
  Act act_;
};

TrainingState state_in(const Checkpoint& checkpoint) {
  return TrainingState::from_json(checkpoint.content().state, checkpoint.content().history);
}

std::vector<std::string> callbacks_of(const std::string& list) {
  std::vector<std::string> names;
  for (const auto& callback : config_from(kRun, {"train.callbacks=" + list}).train.callbacks)
    names.push_back(callback.name);
  return names;
}

}  // namespace

TEST_CASE("short epochs are saved only on request; the last and the best epoch always") {
  CHECK(config_from(kRun).resolved.find("checkpoint")->find("every")->text() == "auto");
  for (const bool with_best : {false, true}) {
    const TempDir directory;
    const RunDirectory run(directory / "run");
    Recorder recorder;
    // Saves a checkpoint in every step, and compares the checkpoints.
    const std::string options = with_best ? "{keep: 1000, best: {monitor: loss}}" : "{keep: 1000}";
    Trainer trainer(plan_from(kRun, {"checkpoint=" + options}), run, recorder, recorder.requests);
    trainer.start();
    trainer.run();
    CHECK(run.has_checkpoint(40 * kStepsPerEpoch));
    REQUIRE(with_best == trainer.state().best.has_value());
    if (with_best) CHECK(run.has_checkpoint(trainer.state().best->step));
    if (!with_best) CHECK(run.checkpoints().size() == 1);
  }
  const TempDir directory;
  const RunDirectory run(directory / "run");
  Recorder recorder;
  Trainer trainer(plan_from(kRun, {"checkpoint={keep: 1000, every: 1 epoch}"}), run, recorder,
                  recorder.requests);
  trainer.start();
  trainer.run();
  CHECK(run.checkpoints().size() == 40);
}

TEST_CASE("a new best is saved at once if the save is short compared to the epoch") {
  using namespace std::chrono_literals;
  const TempDir directory;
  const RunDirectory run(directory / "run");
  bool is_there = false;
  // This observer makes a step long: it waits for the file, and the trainer starts no other save in this
  // time.
  Actor actor(kStepsPerEpoch + 1, [&](Actor&) {
    for (int i = 0; i < 3000 && !is_there; ++i) {
      std::this_thread::sleep_for(10ms);
      is_there = run.has_checkpoint(kStepsPerEpoch);
    }
  });
  actor.step_time = 10ms;
  Trainer trainer(plan_from(kRun, {"train.epochs=2", "checkpoint={best: {monitor: loss}}"}), run, actor,
                  actor.requests);
  trainer.start();
  trainer.run();
  CHECK(is_there);
}

TEST_CASE("a best checkpoint that was held in memory has the weights of the best epoch") {
  const TempDir directory;
  const RunDirectory held(directory / "held"), written(directory / "written");
  const std::string best = "checkpoint.best={monitor: val_loss, mode: max}";  // an early epoch is the best
  for (const auto& [run, every] : {std::pair{held, "auto"}, std::pair{written, "1 epoch"}}) {
    Recorder recorder(33 * kStepsPerEpoch + 2);
    Trainer trainer(plan_from(kRun, {best, fmt::format("checkpoint.every={}", every)}), run, recorder,
                    recorder.requests);
    trainer.start();
    CHECK_THROWS_AS(trainer.run(), Interrupted);
  }
  const TrainingState state = state_in(*load_newest(held, [](const std::string&) {}));
  REQUIRE(state.best);
  CHECK(state.best->step < state.step - kStepsPerEpoch);
  REQUIRE(held.has_checkpoint(state.best->step));
  const Checkpoint one = Checkpoint::load(held.checkpoint_path(state.best->step));
  const Checkpoint other = Checkpoint::load(written.checkpoint_path(state.best->step));
  CHECK(state_in(one).history.last().at("epoch").as_int() ==
        state_in(other).history.last().at("epoch").as_int());
  CHECK(state_in(one).best->value == state_in(other).best->value);
  for (size_t layer = 0; layer < one.content().layers.size(); ++layer)
    for (size_t i = 0; i < one.content().layers[layer].weights.size(); ++i) {
      const ArrayRef& a = one.content().layers[layer].weights[i];
      const ArrayRef& b = other.content().layers[layer].weights[i];
      CHECK(std::equal(static_cast<const float*>(a.data),
                       static_cast<const float*>(a.data) + a.shape.elements(),
                       static_cast<const float*>(b.data)));
    }
}

TEST_CASE("a run saves on request and continues") {
  const TempDir directory;
  const RunDirectory run(directory / "run");
  Actor actor(12, [](Actor& self) { self.requests.save = true; });
  Trainer trainer(plan_from(kRun, {"checkpoint.keep=100"}), run, actor, actor.requests);
  trainer.start();
  trainer.run();
  CHECK(run.has_checkpoint(12));
  CHECK(trainer.state().epoch == 40);
  CHECK(std::any_of(actor.notes.begin(), actor.notes.end(), [&](const std::string& note) {
    return note.find(run.checkpoint_path(12)) != std::string::npos;
  }));
}

TEST_CASE("max_time saves and ends a run in time, and the run can be resumed") {
  const TempDir directory;
  const RunDirectory run(directory / "run");
  const auto begin = std::chrono::steady_clock::now();
  Recorder recorder;
  Trainer trainer(plan_from(kRun, {"train.epochs=1000000", "train.max_time=0.5 seconds"}), run, recorder,
                  recorder.requests);
  trainer.start();
  trainer.run();
  CHECK(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() < 3);
  CHECK(trainer.state().epoch < 1000000);
  CHECK(run.has_checkpoint(trainer.state().step));
  REQUIRE(recorder.notes.size() == 1);
  CHECK(recorder.notes[0].find("max_time (0.5 seconds)") != std::string::npos);
}

TEST_CASE("a run directory may be renamed during the run") {
  const TempDir directory;
  RunDirectory run(directory / "run");
  run.hold();
  Actor actor(20, [&](Actor&) { fs::rename(directory / "run", directory / "renamed"); });
  Trainer trainer(plan_from(kRun, {"checkpoint.every=1 epoch"}), run, actor, actor.requests);
  trainer.start();
  trainer.run();
  CHECK(actor.warnings.empty());
  CHECK(run.path() == fs::canonical(directory / "renamed"));
  const RunDirectory renamed(directory / "renamed");
  CHECK(renamed.checkpoints().size() == 3);
  CHECK(renamed.has_checkpoint(40 * kStepsPerEpoch));
  CHECK(!fs::exists(directory / "run"));
}

TEST_CASE("a run whose directory is removed warns and saves to a directory beside it") {
  for (const bool at_the_end : {false, true}) {
    const TempDir directory;
    RunDirectory run(directory / "run");
    run.hold();
    Actor actor(at_the_end ? 40 * kStepsPerEpoch : 20, [&](Actor&) { fs::remove_all(directory / "run"); });
    // If a save were in progress at the end of the run, it would fail and print a second warning.
    // Therefore, a run that removes its directory at the end saves no earlier checkpoints.
    const std::string every = at_the_end ? "checkpoint.every=1000 epochs" : "checkpoint.every=5 epochs";
    Trainer trainer(plan_from(kRun, {every}), run, actor, actor.requests);
    trainer.start();
    trainer.run();
    CAPTURE(fmt::format("{}", fmt::join(actor.warnings, "\n")));
    REQUIRE(actor.warnings.size() == 1);
    CHECK(actor.warnings[0].find("run-recovered") != std::string::npos);
    CHECK(run.path() == directory / "run-recovered");
    const SavedRun saved = load_saved_run(directory / "run-recovered", {}, [](const std::string&) {});
    CHECK(state_in(saved.checkpoint).epoch == 40);
    CHECK(fs::exists(directory / "run-recovered/config.yaml"));
    std::ifstream metrics(directory / "run-recovered/metrics.jsonl");
    std::string line;
    int lines = 0;
    while (std::getline(metrics, line)) ++lines;
    CHECK(lines == 40);
  }
}

TEST_CASE("checkpoints/ is recreated if it is removed") {
  const TempDir directory;
  RunDirectory run(directory / "run");
  run.hold();
  Actor actor(20, [&](Actor&) { fs::remove_all(directory / "run/checkpoints"); });
  Trainer trainer(plan_from(kRun), run, actor, actor.requests);
  trainer.start();
  trainer.run();
  CHECK(actor.warnings.size() == 1);
  CHECK(run.checkpoints().size() == 1);
}

TEST_CASE("only one process holds a run directory, and discard() leaves it unchanged") {
  const TempDir directory;
  {
    RunDirectory run(directory / "runs/deep/run"), other(directory / "runs/deep/run");
    run.hold();
    CHECK_THROWS_WITH_AS(other.hold(), doctest::Contains("another dtrain"), UserError);
    other.discard();
    CHECK(fs::exists(run.checkpoint_directory()));
    run.write_config("a: 1");
    run.write_metrics("");
    run.discard();
  }
  CHECK(fs::is_empty(directory.path()));
  // The metrics of finished epochs must be kept.
  {
    RunDirectory run(directory / "failed");
    run.hold();
    run.write_config("a: 1");
    run.write_metrics("{}\n");
    run.discard();
  }
  CHECK(fs::exists(directory / "failed/config.yaml"));
  CHECK(fs::exists(directory / "failed/metrics.jsonl"));
  // Existing files must be kept.
  fs::create_directory(directory / "run");
  std::ofstream(directory / "run/notes.txt") << "mine";
  std::ofstream(directory / "run/.config.yaml.dtrain-tmp-999999999-0123abcd") << "half";
  RunDirectory run(directory / "run");
  run.hold();
  CHECK(!fs::exists(directory / "run/.config.yaml.dtrain-tmp-999999999-0123abcd"));
  run.discard();
  CHECK(fs::exists(directory / "run/notes.txt"));
  CHECK(!fs::exists(directory / "run/checkpoints"));
}

TEST_CASE("make_room() removes a checkpoint that is due for removal, never the newest or a protected one") {
  const TempDir directory;
  const RunDirectory run(directory.path());
  fs::create_directory(run.checkpoint_directory());
  for (const int64_t step : {10, 20, 30}) std::ofstream(run.checkpoint_path(step)) << "x";
  CHECK(!run.make_room(40, 4, {}));
  CHECK(!run.make_room(40, 3, {10}));
  CHECK(run.make_room(40, 2, {10}));
  CHECK(run.checkpoints() == std::vector{run.checkpoint_path(10), run.checkpoint_path(30)});
  CHECK(run.make_room(40, 1, {}));
  CHECK(!run.make_room(40, 1, {}));
  CHECK(run.checkpoints() == std::vector{run.checkpoint_path(30)});
  // If a checkpoint is replaced, it is the newest one, so all others may be removed.
  std::ofstream(run.checkpoint_path(20)) << "x";
  CHECK(!run.make_room(30, 2, {}));
  CHECK(run.make_room(30, 1, {}));
  CHECK(!run.make_room(30, 1, {}));
  CHECK(run.checkpoints() == std::vector{run.checkpoint_path(30)});
}

TEST_CASE("a run whose data becomes unreadable fails, with the last finished step saved") {
  constexpr int64_t kRows = 4000, kColumns = 6;
  const TempDir directory;
  const auto write_npy = [&](const std::string& name, int64_t columns) {
    std::string header =
        fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}", kRows, columns);
    header += std::string(63 - (10 + header.size()) % 64, ' ') + "\n";
    std::ofstream file(directory / name, std::ios::binary);
    file << std::string("\x93NUMPY\x01\x00", 8) << static_cast<char>(header.size())
         << static_cast<char>(header.size() / 256) << header
         << std::string(static_cast<size_t>(kRows * columns) * sizeof(float), '\0');
  };
  write_npy("x.npy", kColumns);
  write_npy("y.npy", 3);
  for (const int prefetch : {2, 0}) {  // with 2, a loader thread reads the data; with 0, the replicas read it
    const RunDirectory run(directory / fmt::format("run{}", prefetch));
    Actor actor(20, [&](Actor&) { fs::resize_file(directory / "x.npy", 1000); });
    const std::vector<std::string> sets{
        fmt::format("dataset={{train: {{npy: {{input: {0}/x.npy, target: {0}/y.npy}}}}, prefetch: {1}}}",
                    directory.path(), prefetch),
        "train.loss=mean_squared_error"};
    Trainer trainer(plan_from(kRun, sets), run, actor, actor.requests);
    trainer.start();
    std::string message;
    try {
      trainer.run();
    } catch (const UserError&) {
      FAIL("the error counts as a mistake of the user");
    } catch (const Error& error) {
      message = error.what();
    }
    CHECK(message.find("x.npy") != std::string::npos);
    CHECK(trainer.state().step >= 20);
    CHECK(trainer.state().step < 30);
    REQUIRE(run.has_checkpoint(trainer.state().step));
    CHECK(state_in(Checkpoint::load(run.checkpoint_path(trainer.state().step))).step == trainer.state().step);
    REQUIRE(actor.warnings.size() == 1);
    CHECK(actor.warnings[0].find(run.checkpoint_path(trainer.state().step)) != std::string::npos);
    write_npy("x.npy", kColumns);
  }
}

TEST_CASE("terminate_on_nan is added to the given callbacks, and can be switched off") {
  using Names = std::vector<std::string>;
  CHECK(config_from(kRun).train.callbacks.size() == 1);
  CHECK(callbacks_of("[{early_stopping: {patience: 3}}]") == Names{"early_stopping", "terminate_on_nan"});
  CHECK(callbacks_of("[terminate_on_nan, early_stopping]") == Names{"terminate_on_nan", "early_stopping"});
  CHECK(callbacks_of("[]").empty());
  for (const std::string list : {"[{terminate_on_nan: {enabled: false}}]", "[]"}) {
    const RunConfig config = config_from(kRun, {"train.callbacks=" + list});
    for (const auto& callback : config.train.callbacks)
      CHECK_NOTHROW(callback->after_step(1, 1, std::nan("")));
    // The configuration that is written must have the same meaning as the original.
    CHECK(config_from(config.resolved.to_yaml()).resolved.to_yaml() == config.resolved.to_yaml());
  }
}
