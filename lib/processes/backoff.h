// Waits between two polls, so that polling threads do not take the CPU from threads that compute.
#pragma once

#include <chrono>
#include <thread>

namespace dtrain {

/// Waits between two polls. For 50 us after the last progress, wait() returns at once, because the answer to
/// a small message takes microseconds. Later it yields the core, and after 1 ms it sleeps for 50 us.
class Backoff {
 public:
  /// Restarts the measurement of time. Call it whenever a poll has made progress.
  void reset() { since_ = Clock::now(); }
  void wait() const {
    using std::chrono::microseconds;
    const auto idle = Clock::now() - since_;
    if (idle < microseconds(50)) return;
    if (idle < microseconds(1000)) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(microseconds(50));
    }
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point since_ = Clock::now();
};

}  // namespace dtrain
