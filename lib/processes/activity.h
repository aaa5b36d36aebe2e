// Measures whether this process uses a core or a disk.
#pragma once

#include <chrono>

namespace dtrain {

/// Measures this process except for the thread that calls it. A process whose threads all wait, such as for a
/// lock or for a file on a machine that does not respond, is not active. A process with a thread that spins
/// is active.
class Activity {
 public:
  Activity();
  /// Returns whether the process has used a core for more than a hundredth of the time since the last call,
  /// or has read from a disk or written to one. To be called by one thread.
  bool since_last_call();

 private:
  struct Used {
    double cpu = 0;   // CPU seconds of all other threads
    long blocks = 0;  // blocks read and written, and page faults that had to read
  };
  static Used used();

  using Clock = std::chrono::steady_clock;
  Clock::time_point last_call_;
  Used last_;
};

}  // namespace dtrain
