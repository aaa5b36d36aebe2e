// A limit on the time in which a process that has failed must end.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace dtrain {

/// The seconds that a process may take to clean up after its GPUs have failed or stalled: 30, or
/// DTRAIN_CLEANUP_SECONDS in the environment (tests make it short).
std::chrono::duration<double> cleanup_limit();

/// Ends the process where cleaning up after a failure never returns: calls to a failed GPU may block for
/// ever, in destructors too, and then no exception reaches anybody who shows it.
class ExitDeadline {
 public:
  ExitDeadline() = default;
  /// The clean-up is over: the process goes on.
  ~ExitDeadline();
  ExitDeadline(const ExitDeadline&) = delete;
  ExitDeadline& operator=(const ExitDeadline&) = delete;

  /// If this object still exists after cleanup_limit(), writes `why` to standard error and ends the process
  /// with exit code 1. Only the first call counts. Any thread; returns at once.
  void arm(const std::string& why) noexcept;

  /// While one exists, the time of all deadlines stands still: a file that is worth keeping is written.
  class Hold {
   public:
    Hold();
    ~Hold();
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;
  };

 private:
  void wait(const std::string& message);

  std::mutex mutex_;
  std::condition_variable changed_;
  bool in_time_ = false;
  std::thread thread_;  // from arm() on
};

}  // namespace dtrain
