#include "processes/own_progress.h"

#include <atomic>
#include <chrono>
#include <ctime>
#include <semaphore>
#include <thread>

#include <doctest/doctest.h>

namespace dtrain {

namespace {

double own_cpu_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

/// A thread that uses a core for 0.1 ms at each request.
class ShortWork {
 public:
  ShortWork() : thread_([this] { serve(); }) {}
  ~ShortWork() {
    ends_ = true;
    requested_.release();
    thread_.join();
  }
  void run() {
    requested_.release();
    done_.acquire();
  }

 private:
  void serve() {
    for (requested_.acquire(); !ends_; requested_.acquire()) {
      const double end = own_cpu_seconds() + 1e-4;
      while (own_cpu_seconds() < end) continue;
      done_.release();
    }
  }

  std::atomic<bool> ends_{false};
  std::binary_semaphore requested_{0}, done_{0};
  std::thread thread_;
};

}  // namespace

TEST_CASE("a process hangs although a thread wakes up just before other processes send messages") {
  using Seconds = OwnProgress::Seconds;
  OwnProgress own;
  own.set_source([] { return ProcessProgress{12, "reading samples", false}; });
  own.set_hang_limit(Seconds(0.5));
  ShortWork work;
  bool hangs = false;
  auto before = std::chrono::steady_clock::now();
  const auto look = [&] {
    const auto now = std::chrono::steady_clock::now();
    hangs = own.hangs(now - before) || hangs;
    before = now;
  };
  for (int i = 0; i < 40 && !hangs; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    look();
    work.run();
    look();
  }
  CHECK(hangs);
}

}  // namespace dtrain
