// When waiting for devices has taken too long.
#include "train/standstill.h"

#include <csignal>
#include <future>
#include <unistd.h>

#include <doctest/doctest.h>

namespace dtrain {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// A watch whose end can be waited for.
class Watched {
 public:
  explicit Watched(StandstillWatch::Seconds limit)
      : ended_(end_.get_future()), watch_(limit, [this] { end_.set_value(); }) {}
  StandstillWatch* watch() { return &watch_; }
  bool ends_within(StandstillWatch::Seconds time) const {
    return ended_.wait_for(time) == std::future_status::ready;
  }

 private:
  std::promise<void> end_;
  std::future<void> ended_;
  StandstillWatch watch_;
};

/// Stops this process as a scheduler may, and lets it go on after so many seconds.
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

TEST_CASE("what is waited for too long is ended") {
  Watched watched(milliseconds(50));
  const auto waiting = StandstillWatch::waiting(watched.watch());
  CHECK(watched.ends_within(seconds(20)));
}

TEST_CASE("nothing is ended that nobody waits for, nor while samples are read") {
  Watched watched(milliseconds(20));
  CHECK_FALSE(watched.ends_within(milliseconds(200)));
  const auto waiting = StandstillWatch::waiting(watched.watch());
  const auto reading = StandstillWatch::reading(watched.watch());
  CHECK_FALSE(watched.ends_within(milliseconds(200)));
}

TEST_CASE("a process that was stopped goes on") {
  Watched watched(seconds(2));
  const auto waiting = StandstillWatch::waiting(watched.watch());
  stop_for(3);
  CHECK_FALSE(watched.ends_within(milliseconds(300)));
}

}  // namespace dtrain
