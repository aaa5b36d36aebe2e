// Ends a run whose GPUs fail or stall.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace dtrain {

/// Watches the GPUs of a run with two threads. The first thread queries the GPUs for failures a few times per
/// second, because a thread that waits for one GPU may never notice that another GPU has failed. The second
/// thread detects stalls. For example, NCCL's documentation warns of a deadlock that may occur if several
/// GPUs in one process run captured steps. The second thread does not call CUDA, because such a call might
/// not return although no device has failed.
class Watchdog {
 public:
  using Seconds = std::chrono::duration<double>;
  /// The watched run. The functions are called from the watchdog's threads. find_failure() is also called
  /// from other threads.
  struct Run {
    std::function<std::string()> find_failure;    // queries the devices; returns "" if none has failed
    std::function<std::string()> describe_stall;  // returns the error message for a stalled run
    std::function<void(const std::string&)> end;  // ends the run with this error; must not block
  };
  /// Ends the run in two cases: a device has failed; or threads wait for devices, and no thread has started
  /// or finished an activity (Scope) for `limit`. The run is ended only once.
  Watchdog(Seconds limit, Run run);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// Throws Error if a failure or a stall has ended the run.
  void check();
  /// Queries the devices on the calling thread, without waiting for the next regular query, and then calls
  /// check().
  void ask();

  /// Marks the activity of the calling thread during the lifetime of this object. `watchdog` may be null.
  class Scope {
   public:
    Scope(Watchdog* watchdog, std::atomic<int> Watchdog::*count);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Watchdog* watchdog_;
    std::atomic<int> Watchdog::*count_;
  };
  /// Marks that the calling thread enqueues work on devices or waits for them.
  static Scope waiting(Watchdog* watchdog) { return {watchdog, &Watchdog::waiting_}; }
  /// Marks that the calling thread works on the host for an unlimited time, to read samples or to create a
  /// plan.
  static Scope working(Watchdog* watchdog) { return {watchdog, &Watchdog::working_}; }

 private:
  using Clock = std::chrono::steady_clock;

  void end(const std::string& why);
  void move() { last_move_ = Clock::now().time_since_epoch().count(); }
  bool stalls() const;
  void watch_health();
  void watch_progress(Clock::time_point looked);
  void stop();

  const Seconds limit_;
  const Run run_;
  std::atomic<int> waiting_{0}, working_{0};
  std::atomic<Clock::rep> last_move_{0};  // time at which a thread last started or finished an activity
  std::mutex mutex_;
  std::condition_variable changed_;
  bool closing_ = false;
  std::string failure_;            // error with which the run was ended
  std::thread health_, progress_;  // the last members, because the threads use the other members
};

}  // namespace dtrain
