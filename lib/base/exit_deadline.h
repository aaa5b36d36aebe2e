// A time limit for cleaning up after a failure.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace dtrain {

/// Returns the time that a process may take to clean up after its GPUs have failed or stalled. The default is
/// 30 seconds; the environment variable DTRAIN_CLEANUP_SECONDS changes it (used by tests).
std::chrono::duration<double> cleanup_limit();

/// Ends the process if the clean-up after a failure does not finish in time. A call to a failed GPU may block
/// forever. If a destructor makes this call, the exception that reports the failure never reaches its
/// handler.
class ExitDeadline {
 public:
  ExitDeadline() = default;
  /// Disarms the deadline: the clean-up has finished.
  ~ExitDeadline();
  ExitDeadline(const ExitDeadline&) = delete;
  ExitDeadline& operator=(const ExitDeadline&) = delete;

  /// If this object still exists after cleanup_limit(), writes `why` to standard error and ends the process
  /// with exit code 1. Only the first call counts. May be called from any thread; returns at once.
  void arm(const std::string& why) noexcept;

  /// Returns whether a Hold exists.
  static bool is_held();
  /// While a Hold exists, all deadlines are paused, e.g. while a file worth keeping is being written.
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
  std::thread thread_;  // set by arm()
};

}  // namespace dtrain
