// If a process does not exit in time after a failure, it is ended at a deadline.
#include "base/exit_deadline.h"

#include <array>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include <doctest/doctest.h>

namespace dtrain {
namespace {

struct End {
  int code = -1;  // exit code; -1 after a signal
  std::string output;
};

/// Runs `work` in a child process that has 0.2 seconds to clean up. Returns the exit code and the output of
/// the process. The exit code is 7 if `work` returns.
End end_of(const std::function<void()>& work) {
  std::array<int, 2> pipe_ends{};
  REQUIRE(pipe(pipe_ends.data()) == 0);
  const pid_t child = fork();
  if (child == 0) {
    setenv("DTRAIN_CLEANUP_SECONDS", "0.2", 1);
    dup2(pipe_ends[1], STDERR_FILENO);
    work();
    _exit(7);
  }
  REQUIRE(child > 0);
  close(pipe_ends[1]);
  End end;
  std::array<char, 4096> text{};
  for (ssize_t n = 0; (n = read(pipe_ends[0], text.data(), text.size())) > 0;)
    end.output.append(text.data(), static_cast<size_t>(n));
  close(pipe_ends[0]);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  if (WIFEXITED(status)) end.code = WEXITSTATUS(status);
  return end;
}

void sleep_for(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

}  // namespace

TEST_CASE("a process that does not clean up in time ends with the first error") {
  const End end = end_of([] {
    ExitDeadline deadline;
    deadline.arm("gpu:1: it broke");
    deadline.arm("another replica broke");
    sleep_for(60);
  });
  CHECK(end.code == 1);
  CHECK(end.output ==
        "error: gpu:1: it broke\n"
        "error: cleaning up did not finish within 0.2 seconds; ending the process\n");
}

TEST_CASE("a process that cleans up in time is not ended") {
  const End end = end_of([] {
    {
      ExitDeadline unused, deadline;
      deadline.arm("it broke");
      sleep_for(0.05);
    }
    sleep_for(0.6);
  });
  CHECK(end.code == 7);
  CHECK(end.output == "");
}

TEST_CASE("the process is not ended at the deadline while it writes a file") {
  const End end = end_of([] {
    ExitDeadline deadline;
    auto hold = std::make_unique<ExitDeadline::Hold>();
    deadline.arm("it broke");
    sleep_for(0.8);
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, "written\n", 8);
    hold.reset();
    sleep_for(60);
  });
  CHECK(end.code == 1);
  CHECK(end.output.starts_with("written\nerror: it broke\n"));
}

TEST_CASE("a deadline may have its own limit, message and exit code") {
  const End end = end_of([] {
    ExitDeadline deadline;
    deadline.arm(ExitDeadline::Ending{
        .message = "warning: slow\n", .limit = std::chrono::duration<double>(0.01), .exit_code = 0});
    sleep_for(60);
  });
  CHECK(end.code == 0);
  CHECK(end.output == "warning: slow\n");
}

TEST_CASE("at a deadline, other processes are told before the process ends") {
  const End end = end_of([] {
    ExitDeadline deadline;
    ExitDeadline::Ending ending{.message = "error: late\n"};
    ending.tell_others = [] { [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, "told\n", 5); };
    deadline.arm(std::move(ending));
    sleep_for(60);
  });
  CHECK(end.code == 1);
  CHECK(end.output == "told\nerror: late\n");
}

}  // namespace dtrain
