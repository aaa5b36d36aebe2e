// Time limits after which the process ends, for calls that may never return.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace dtrain {

/// Returns the time that a process may take to clean up after its GPUs have failed or stalled. The default is
/// 30 seconds; the environment variable DTRAIN_CLEANUP_SECONDS changes it (used by tests).
std::chrono::duration<double> cleanup_limit();
/// Returns the time that NCCL may take to connect GPUs, and that releasing the GPUs may take after a run:
/// four times cleanup_limit().
std::chrono::duration<double> connection_limit();

/// Notes that a thread may never return from a call to a library. At the end of main(), the process must then
/// end without calling the destructors of static objects, because this thread may still use these objects.
void note_stuck_thread();
bool has_stuck_thread();

/// Ends the process if work does not finish in time. Calls to GPUs and to NCCL may block forever. If a
/// destructor makes such a call after a failure, the exception that reports the failure never reaches its
/// handler.
class ExitDeadline {
 public:
  /// How the process ends at the deadline.
  struct Ending {
    std::string message = {};  // whole lines, written to standard error; may be empty
    std::chrono::duration<double> limit = cleanup_limit();
    int exit_code = 1;
    /// A function to call at the deadline; may be null. The process ends one second after the call, so that
    /// the other processes can receive the message that the function sends.
    std::function<void()> tell_others = {};
  };

  ExitDeadline() = default;
  /// Disarms the deadline: the work has finished.
  ~ExitDeadline();
  ExitDeadline(const ExitDeadline&) = delete;
  ExitDeadline& operator=(const ExitDeadline&) = delete;

  /// Ends the process as `ending` describes, if this object still exists after ending.limit. Only the first
  /// call of either arm() function has an effect. Both functions may be called from any thread, and return at
  /// once.
  void arm(Ending ending) noexcept;
  /// Ends the process with the error `why` if the clean-up after this error does not finish within
  /// cleanup_limit().
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
  void wait(const Ending& ending);

  std::mutex mutex_;
  std::condition_variable changed_;
  bool in_time_ = false;
  std::thread thread_;  // set by arm()
};

}  // namespace dtrain
