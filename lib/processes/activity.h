// Measures whether this process uses a core or a disk.
#pragma once

#include <chrono>

namespace dtrain {

/// Detects whether this process is active. The calling thread is not counted. A process is not active if all
/// its threads wait, for example for a lock, or for a file on a machine that does not respond. A process with
/// a thread that waits in a busy loop is active.
class Activity {
 public:
  Activity();
  /// Returns whether the process has used a core for more than a hundredth of the time since the last call,
  /// or has read from a disk or written to one. To be called by one thread.
  bool since_last_call();

 private:
  struct Used {
    double cpu = 0;   // CPU seconds of all other threads
    long blocks = 0;  // blocks read and written, and page faults that had to read from disk
  };
  static Used used();

  using Clock = std::chrono::steady_clock;
  Clock::time_point last_call_;
  Used last_;
};

}  // namespace dtrain
