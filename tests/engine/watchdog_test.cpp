// Detection of GPUs that fail, and of steps that take too long.
#include "engine/watchdog.h"

#include <csignal>
#include <future>
#include <unistd.h>

#include <doctest/doctest.h>

#include "base/error.h"

namespace dtrain {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// A watchdog. Tests can wait until the watchdog has ended the run.
class Watched {
 public:
  explicit Watched(Watchdog::Seconds limit)
      : ended_(end_.get_future()),
        watchdog_(limit, {[this] { return failed_ ? "gpu:1: it failed" : ""; }, [] { return "it stalls"; },
                          [this](const std::string& why) { end_.set_value(why); }}) {}
  Watchdog* watchdog() { return &watchdog_; }
  void fail() { failed_ = true; }
  bool ends_within(Watchdog::Seconds time) const {
    return ended_.wait_for(time) == std::future_status::ready;
  }
  std::string why() { return ended_.get(); }

 private:
  std::atomic<bool> failed_{false};
  std::promise<std::string> end_;
  std::future<std::string> ended_;
  Watchdog watchdog_;
};

/// Suspends this process for `time` seconds, as a scheduler may do.
void stop_for(unsigned time) {
  const pid_t waker = fork();
  if (waker == 0) {
    sleep(time);
    kill(getppid(), SIGCONT);
    _exit(0);
  }
  REQUIRE(waker > 0);
  raise(SIGSTOP);
}

}  // namespace

TEST_CASE("a run that waits too long for a device is ended") {
  Watched watched(milliseconds(50));
  const auto waiting = Watchdog::waiting(watched.watchdog());
  REQUIRE(watched.ends_within(seconds(20)));
  CHECK(watched.why() == "it stalls");
  CHECK_THROWS_WITH_AS(watched.watchdog()->check(), "it stalls", Error);
}

TEST_CASE("a run is not ended while no thread waits, or while the host works") {
  Watched watched(milliseconds(20));
  CHECK_FALSE(watched.ends_within(milliseconds(200)));
  const auto waiting = Watchdog::waiting(watched.watchdog());
  const auto working = Watchdog::working(watched.watchdog());
  CHECK_FALSE(watched.ends_within(milliseconds(200)));
  watched.watchdog()->check();
}

TEST_CASE("a run is not ended because its process was suspended") {
  Watched watched(seconds(2));
  const auto waiting = Watchdog::waiting(watched.watchdog());
  stop_for(3);
  CHECK_FALSE(watched.ends_within(milliseconds(300)));
}

TEST_CASE("a failed device ends the run once, even if no thread waits for it") {
  Watched watched(seconds(100));
  watched.watchdog()->ask();
  watched.fail();
  REQUIRE(watched.ends_within(seconds(20)));
  CHECK(watched.why() == "gpu:1: it failed");
  CHECK_THROWS_WITH_AS(watched.watchdog()->check(), "gpu:1: it failed", Error);
  CHECK_THROWS_WITH_AS(watched.watchdog()->ask(), "gpu:1: it failed", Error);
}

TEST_CASE("ask() reports a failure at once") {
  Watched watched(seconds(100));
  watched.fail();
  CHECK_THROWS_WITH_AS(watched.watchdog()->ask(), "gpu:1: it failed", Error);
  REQUIRE(watched.ends_within(seconds(0)));
}

}  // namespace dtrain
