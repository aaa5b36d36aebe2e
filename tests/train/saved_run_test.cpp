// Tests that the newest checkpoint of a run is found while other processes write and remove checkpoints.
#include "train/saved_run.h"

#include <chrono>
#include <sys/file.h>
#include <thread>

#include "checkpoint/directory_lock.h"
#include "support/runs.h"

using namespace dtrain;
using namespace dtrain::test;

namespace {

/// Saves one step after another in a separate thread; `prune` removes checkpoints that are not kept.
class Writer {
 public:
  template <class Prune>
  Writer(const RunDirectory& run, Prune prune) {
    save_checkpoint(run.checkpoint_path(0), {});
    thread_ = std::thread([this, run, prune] {
      for (int64_t step = 1; !stop_; ++step) {
        save_checkpoint(run.checkpoint_path(step), {});
        prune(run);
        step_ = step;
      }
    });
  }
  ~Writer() {
    stop_ = true;
    thread_.join();
  }
  int64_t step() const { return step_; }

 private:
  std::atomic<bool> stop_{false};
  std::atomic<int64_t> step_{0};
  std::thread thread_;
};

void expect_newest(const RunDirectory& run, const Writer& writer) {
  std::string warnings;
  int64_t found = 0;
  for (int i = 0; i < 300; ++i) {
    const int64_t before = writer.step();
    const std::optional<Checkpoint> newest =
        load_newest(run, [&](const std::string& text) { warnings += text; });
    REQUIRE(newest);
    if (*checkpoint_step(std::filesystem::path(newest->path()).filename()) >= before) ++found;
  }
  CHECK(found == 300);
  CHECK(warnings == "");
}

}  // namespace

TEST_CASE("the newest checkpoint is found while a run that keeps only one saves continuously") {
  const TempDir directory;
  const RunDirectory run(directory / "run");
  std::filesystem::create_directories(run.checkpoint_directory());
  const Writer writer(run, [](const RunDirectory& held) { held.prune(1, {}); });
  expect_newest(run, writer);
}

TEST_CASE("the newest checkpoint is found during saves on a file system without locks") {
  const TempDir directory;
  const RunDirectory run(directory / "run");
  std::filesystem::create_directories(run.checkpoint_directory());
  const Writer writer(run, [](const RunDirectory& held) {
    const auto paths = held.checkpoints();
    for (size_t i = 0; i + 1 < paths.size(); ++i) std::filesystem::remove(paths[i]);
  });
  expect_newest(run, writer);
}

TEST_CASE("no checkpoint is removed while another process looks for the newest one") {
  const TempDir directory;
  const RunDirectory run(directory / "run");
  std::filesystem::create_directories(run.checkpoint_directory());
  for (const int64_t step : {1, 2, 3}) save_checkpoint(run.checkpoint_path(step), {});
  {
    const DirectoryLock reader(run.checkpoint_directory(), DirectoryLock::Kind::shared);
    const DirectoryLock other(run.checkpoint_directory(), DirectoryLock::Kind::shared);
    CHECK(!other.refused());
    run.prune(1, {});
    CHECK(run.checkpoints().size() == 3);
  }
  run.prune(1, {});
  CHECK(run.checkpoints().size() == 1);
}

TEST_CASE("the best checkpoint is found while a run replaces it, on a file system without locks") {
  const TempDir directory;
  const RunDirectory run(directory / "run");
  std::filesystem::create_directories(run.checkpoint_directory());
  std::atomic<bool> stop{false};
  // Every second checkpoint is the best one so far. The run keeps the newest and the best checkpoint.
  const auto save = [&](int64_t step) {
    TrainingState state;
    state.step = step;
    state.best = TrainingState::Best{.value = 0, .step = step - step % 2, .watched = ""};
    CheckpointContent content;
    content.state = state.to_json();
    content.config_yaml = kDenseRun;
    save_checkpoint(run.checkpoint_path(step), content);
    for (const int64_t old : checkpoint_steps(run.checkpoint_directory()))
      if (old < state.best->step) std::filesystem::remove(run.checkpoint_path(old));
  };
  save(2);
  std::thread writer([&] {
    for (int64_t step = 3; !stop; ++step) save(step);
  });
  std::string warnings;
  const auto warn = [&](const std::string& text) { warnings += text; };
  try {
    for (int i = 0; i < 300; ++i) {
      CHECK(saved_state(load_best_checkpoint(run.path(), warn)).step % 2 == 0);
      CHECK(saved_state(load_saved_run(run.path(), {}, warn, Which::best).checkpoint).step % 2 == 0);
    }
  } catch (const Error& error) {
    FAIL_CHECK(error.what());
  }
  stop = true;
  writer.join();
  CHECK(warnings == "");
}

TEST_CASE("the newest checkpoint replaces a best checkpoint that was removed, with a warning") {
  const TempDir directory;
  const RunDirectory run(directory / "run");
  std::filesystem::create_directories(run.checkpoint_directory());
  TrainingState state;
  state.step = 3;
  state.best = TrainingState::Best{.value = 0, .step = 2, .watched = ""};
  CheckpointContent content;
  content.state = state.to_json();
  save_checkpoint(run.checkpoint_path(3), content);
  std::vector<std::string> warnings;
  const Checkpoint found =
      load_best_checkpoint(run.path(), [&](const std::string& text) { warnings.push_back(text); });
  CHECK(found.path() == run.checkpoint_path(3));
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].find("but the file does not exist; using the newest checkpoint") != std::string::npos);
}

TEST_CASE("a path that cannot be a run is an error that says why") {
  const TempDir directory;
  const auto refusal = [](const std::string& path) -> std::string {
    try {
      load_saved_run(path, {}, [](const std::string&) {});
    } catch (const UserError& error) {
      return error.what();
    }
    return "loaded";
  };
  std::filesystem::create_symlink("loop", directory / "loop");
  CHECK(refusal(directory / "loop") ==
        directory / "loop" + ": could not be read: Too many levels of symbolic links");
  const std::string longest = directory / std::string(300, 'x');
  CHECK(refusal(longest) == longest + ": could not be read: File name too long");
  CHECK(refusal(directory / "none") ==
        directory / "none" +
            ": expected a run directory or a checkpoint, but there is no such file or directory");
  CHECK(refusal(directory.path()) ==
        directory.path() +
            ": expected a run directory (with checkpoints/ckpt-....h5 in it) or a checkpoint, "
            "but this folder contains no checkpoints");
  directory.write("begun/run.jsonl", R"({"event": "fit", "time": "2026-01-01T00:00:00Z"})");
  CHECK(refusal(directory / "begun") ==
        directory / "begun" +
            ": the run has not saved a checkpoint yet; use `dtrain fit CONFIG --resume` to start it");
  std::filesystem::create_directories(directory / "run/checkpoints/ckpt-00000001.h5");
  CHECK(refusal(directory / "run") ==
        directory / "run/checkpoints: none of the checkpoints in this folder can be read");
  if (::geteuid() == 0) return;  // root can access everything
  std::filesystem::permissions(directory / "run/checkpoints", std::filesystem::perms::none);
  CHECK(refusal(directory / "run") == directory / "run/checkpoints: could not be read: Permission denied");
  std::filesystem::permissions(directory / "run/checkpoints", std::filesystem::perms::owner_all);
}
