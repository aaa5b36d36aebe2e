// If the GPUs of a run fail or stall, the run ends with a message. If a thread of the run does not return,
// the process exits. Therefore these test cases run in a child process.
#include <array>
#include <chrono>
#include <cstdio>
#include <spawn.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "base/exit_deadline.h"
#include "device/device.h"
#include "emulation/emulation.h"
#include "support/runs.h"
#include "support/speed.h"

using namespace dtrain;
using namespace dtrain::test;

namespace {

using Sets = std::vector<std::string>;

/// Maximum duration of a child process. Without the limits that are tested, the process would never end.
constexpr double kMostSeconds = 20 * kSlowness;

const std::string kMirrored = "strategy={mirrored: {devices: ['gpu:0', 'gpu:1']}}";
const std::string kPipeline = "strategy={pipeline: {devices: ['gpu:0', 'gpu:1'], stages: [dense_1]}}";
const std::string kSingle = "strategy={single: {device: 'gpu:0'}}";

/// Calls `happens` after a given step.
class Accident final : public Recorder {
 public:
  explicit Accident(void (*happens)(), int64_t step = 12) : happens_(happens), step_(step) {}
  void on_step(const Progress& progress) override {
    Recorder::on_step(progress);
    if (progress.global_step == step_) happens_();
  }

 private:
  void (*happens_)();
  int64_t step_;
};

void break_second() {
  emulation::break_device(1);
}

/// Trains, and then ends the process in the same way as the program dtrain. For test cases that run in a
/// child process.
[[noreturn]] void train_here(const Sets& sets, void (*happens)()) {
  try {
    const TempDir directory;
    Accident recorder(happens);
    Trainer trainer(plan_from(kDenseRun, sets), RunDirectory(directory / "run"), recorder, recorder.requests);
    trainer.start();
    trainer.run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "thrown: %s\n%s", error.what(), has_stuck_thread() ? "a thread is stuck\n" : "");
    _exit(1);
  }
  _exit(0);
}

struct End {
  int code = -1;  // exit code; -1 after a signal
  std::string said;
  double seconds = 0;
};

/// Runs the test case of this name, which is normally skipped, in a child process. The process has this
/// number of seconds to clean up.
End end_of_case(const std::string& name, const char* cleanup_seconds = "2") {
  std::array<int, 2> pipe_ends{};
  REQUIRE(pipe(pipe_ends.data()) == 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], STDERR_FILENO);
  posix_spawn_file_actions_addclose(&actions, pipe_ends[0]);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", 1 /* O_WRONLY */, 0);
  std::string program = "/proc/self/exe", no_skip = "--no-skip", wanted = "--test-case=" + name;
  std::array<char*, 4> arguments{program.data(), no_skip.data(), wanted.data(), nullptr};
  setenv("DTRAIN_CLEANUP_SECONDS", cleanup_seconds, 1);
  const auto begin = std::chrono::steady_clock::now();
  pid_t child = 0;
  REQUIRE(posix_spawn(&child, program.c_str(), &actions, nullptr, arguments.data(), environ) == 0);
  unsetenv("DTRAIN_CLEANUP_SECONDS");
  posix_spawn_file_actions_destroy(&actions);
  close(pipe_ends[1]);
  End end;
  std::array<char, 4096> text{};
  for (ssize_t n = 0; (n = read(pipe_ends[0], text.data(), text.size())) > 0;)
    end.said.append(text.data(), static_cast<size_t>(n));
  close(pipe_ends[0]);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  if (WIFEXITED(status)) end.code = WEXITSTATUS(status);
  end.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return end;
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("own process: a GPU of two replicas fails" * doctest::skip()) {
    train_here({kMirrored}, break_second);
  }
  TEST_CASE("own process: a GPU of two replicas fails and aborted reductions never end" * doctest::skip()) {
    emulation::block_nccl(emulation::NcclCalls::aborting);
    train_here({kMirrored}, break_second);
  }
  TEST_CASE("own process: a GPU of a pipeline fails" * doctest::skip()) {
    // The first operation of the second GPU starts only when all threads wait.
    emulation::restart({.eagerness = 0});
    train_here({kPipeline}, break_second);
  }
  TEST_CASE("own process: a single GPU stalls" * doctest::skip()) {
    train_here({kSingle, "train.step_timeout=1 second"}, [] { emulation::block_graph_launches(0); });
  }

  TEST_CASE("own process: NCCL does not connect" * doctest::skip()) {
    emulation::block_nccl(emulation::NcclCalls::connecting);
    train_here({kMirrored, "train.step_timeout=1 second"}, [] {});
  }
  TEST_CASE("own process: NCCL does not release the GPUs of a good run" * doctest::skip()) {
    train_here({kMirrored, "train.epochs=3"},
               [] { emulation::block_nccl(emulation::NcclCalls::destroying); });
  }
  TEST_CASE("own process: copies between GPUs never arrive" * doctest::skip()) {
    emulation::restart({.peers = emulation::PeerAccess::hanging});
    train_here({kPipeline, "train.step_timeout=1 second"}, [] {});
  }

  TEST_CASE("if NCCL does not connect the GPUs in time, the process ends with advice") {
    if (gpu_presence().count < 2) return;
    const End end = end_of_case("own process: NCCL does not connect", "0.5");
    CAPTURE(end.said);
    CHECK(end.code == 1);
    CHECK(end.said.starts_with("error: NCCL did not connect the GPUs within 2 seconds. Set NCCL_DEBUG=INFO"));
    CHECK(end.seconds < kMostSeconds);
  }

  TEST_CASE("if NCCL does not release the GPUs after a good run, the process ends with a warning") {
    if (gpu_presence().count < 2) return;
    const End end = end_of_case("own process: NCCL does not release the GPUs of a good run", "0.5");
    CAPTURE(end.said);
    CHECK(end.code == 0);
    CHECK(end.said ==
          "warning: all results are saved, but releasing the GPUs did not finish within 2 seconds; "
          "ending the process\n");
    CHECK(end.seconds < kMostSeconds);
  }

  TEST_CASE("if copies between two GPUs never arrive, the process ends with an error that names both") {
    if (gpu_presence().count < 2) return;
    const End end = end_of_case("own process: copies between GPUs never arrive", "1.5");
    CAPTURE(end.said);
    CHECK(end.code == 1);
    CHECK(end.said.starts_with(
        "error: gpu:0 and gpu:1: data copied between these GPUs did not arrive within 1 seconds. "));
    CHECK(end.said.find("set DTRAIN_P2P=0") != std::string::npos);
    CHECK(end.seconds < kMostSeconds);
  }

  TEST_CASE("replicas that only evaluate do not need NCCL") {
    if (gpu_presence().count < 2) return;
    const RunConfig config = config_from(kDenseRun, {kMirrored});
    const RunPlan plan = plan_of(config);
    emulation::set_nccl_version(22105);
    CHECK_THROWS_WITH_AS(Engine(plan, true), doctest::Contains("NCCL 2.21.5"), UserError);
    {
      Engine engine(plan, false);
      engine.allocate(Plan::Purpose::evaluation, 8);
      engine.initialize();
      const auto loader = open_loader(config, *config.dataset.validation, false, false);
      loader->begin(0, 0);
      CHECK(engine.evaluate(*loader->next()).samples == 8);
    }
    emulation::set_nccl_version(0);
  }

  TEST_CASE("an error names the failed GPU even if the replicas' reductions cannot be aborted") {
    if (gpu_presence().count < 2) return;
    for (const char* name : {"own process: a GPU of two replicas fails",
                             "own process: a GPU of two replicas fails and aborted reductions never end"}) {
      CAPTURE(name);
      const End end = end_of_case(name);
      CAPTURE(end.said);
      CHECK(end.code == 1);
      CHECK(end.said.starts_with(
          "thrown: gpu:1: CUDA error 719, cudaErrorLaunchFailure; an earlier operation"));
      if (std::string(name).ends_with("never end"))
        CHECK(end.said.find("a thread is stuck") != std::string::npos);
      CHECK(end.seconds < kMostSeconds);
    }
  }

  TEST_CASE("an error names the failed second GPU of a pipeline while the first waits for it") {
    if (gpu_presence().count < 2) return;
    const End end = end_of_case("own process: a GPU of a pipeline fails");
    CAPTURE(end.said);
    CHECK(end.code == 1);
    CHECK(end.said.starts_with("error: gpu:1: "));
    CHECK(end.said.find("ending the process") != std::string::npos);
    CHECK(end.seconds < kMostSeconds);
  }

  TEST_CASE("if a single GPU stalls, the process ends") {
    if (gpu_presence().count < 1) return;
    const End end = end_of_case("own process: a single GPU stalls");
    CAPTURE(end.said);
    CHECK(end.code == 1);
    CHECK(end.said.starts_with("error: gpu:0: no progress for 1 second at step 1"));
    CHECK(end.seconds < kMostSeconds);
  }

  TEST_CASE("if a single GPU fails, the run ends with an error that names the GPU and gives advice") {
    if (gpu_presence().count < 1) return;
    const TempDir directory;
    Accident recorder([] { emulation::break_device(0); });
    {
      Trainer trainer(plan_from(kDenseRun, {kSingle}), RunDirectory(directory / "run"), recorder,
                      recorder.requests);
      trainer.start();
      CHECK_THROWS_WITH_AS(trainer.run(),
                           doctest::Contains("gpu:0: CUDA error 719, cudaErrorLaunchFailure; an earlier"),
                           Error);
      CHECK_THROWS_WITH_AS(trainer.engine().state().read("parameters", {0, 1}, nullptr),
                           doctest::Contains("gpu:0: "), Error);
    }
    emulation::repair_devices();
  }

  TEST_CASE("a stalled step ends the run with an error that has the location and advice") {
    if (gpu_presence().count < 2) return;
    const TempDir directory;
    Accident recorder([] { emulation::block_graph_launches(1); });
    Trainer trainer(plan_from(kDenseRun, {kMirrored, "train.step_timeout=1 second"}),
                    RunDirectory(directory / "run"), recorder, recorder.requests);
    trainer.start();
    const auto begin = std::chrono::steady_clock::now();
    CHECK_THROWS_WITH_AS(trainer.run(), doctest::Contains("gpu:1: no progress for 1 second at step 1"),
                         Error);
    emulation::block_graph_launches(-1);
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
    CHECK(recorder.losses.size() >= 12);
    CHECK(recorder.losses.size() <= 14);
  }

  TEST_CASE("if only NCCL reports an error, the run ends with a message") {
    if (gpu_presence().count < 2) return;
    const TempDir directory;
    Accident recorder([] { emulation::lose_nccl_link(1); });
    Trainer trainer(plan_from(kDenseRun, {kMirrored}), RunDirectory(directory / "run"), recorder,
                    recorder.requests);
    trainer.start();
    const auto begin = std::chrono::steady_clock::now();
    CHECK_THROWS_WITH_AS(trainer.run(), doctest::Contains("summing over the GPUs failed: NCCL error "),
                         Error);
    emulation::lose_nccl_link(-1);
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
    CHECK(recorder.losses.size() <= 14);
  }

  TEST_CASE("creating a plan may take longer than train.step_timeout") {
    if (gpu_presence().count < 1) return;
    constexpr auto kImages = R"(
model:
  inputs: {image: [6, 6, 2]}
  layers: [{conv2d: {filters: 3, kernel_size: 3}}, flatten, {dense: {units: 3}}]
dataset:
  train: {synthetic: {samples: 10, target: {classes: 3}}}
  validation: {synthetic: {samples: 6, target: {classes: 3}}}
strategy: {single: {device: 'gpu:0'}}
train:
  epochs: 1
  batch_size: 8
  step_timeout: 1 second
  loss: {sparse_categorical_crossentropy: {from_logits: true}}
  optimizer: sgd
)";
    const TempDir directory;
    // The plan for validation is created after step 2. Creating it takes longer than the step timeout.
    Accident recorder([] { emulation::slow_down_plans(1.5); }, 2);
    Trainer trainer(plan_from(kImages), RunDirectory(directory / "run"), recorder, recorder.requests);
    trainer.start();
    const auto begin = std::chrono::steady_clock::now();
    trainer.run();
    emulation::slow_down_plans(0);
    CHECK(std::chrono::steady_clock::now() - begin > std::chrono::milliseconds(1500));
    CHECK(recorder.losses.size() == 2);
  }
}
