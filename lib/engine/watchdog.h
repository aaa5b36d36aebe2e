// Ends a run whose GPUs fail, or stall without any failure.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace dtrain {

/// Watches the GPUs of a run from two threads. One asks them a few times a second whether they have failed:
/// a thread that waits for another GPU than the one that failed may never hear of it. The other asks nothing,
/// as even that might not return; it finds runs that stall: NCCL's documentation warns that captured steps of
/// several GPUs of one process can deadlock, and then no call returns and no device has failed.
class Watchdog {
 public:
  using Seconds = std::chrono::duration<double>;
  /// What it watches. All are called from the watchdog's threads, find_failure() also from others.
  struct Run {
    std::function<std::string()> find_failure;    // asks the devices; "" where none has failed
    std::function<std::string()> describe_stall;  // the error of a run that stalls
    std::function<void(const std::string&)> end;  // makes the run end with this error; must not wait
  };
  /// Ends the run, once, where a device has failed, or where threads wait for devices and none of them has
  /// begun or finished anything for `limit`.
  Watchdog(Seconds limit, Run run);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// Throws Error where a failure or a stall has ended the run.
  void check();
  /// Asks the devices at once, in the calling thread, and then check().
  void ask();

  /// For as long as it exists, the calling thread does what the watchdog is told of; where there is one.
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
  /// Gives devices work, or waits for them.
  static Scope waiting(Watchdog* watchdog) { return {watchdog, &Watchdog::waiting_}; }
  /// Works on the host, which may take as long as it takes: reads samples, makes a plan.
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
  std::atomic<Clock::rep> last_move_{0};  // when something last began or ended
  std::mutex mutex_;
  std::condition_variable changed_;
  bool closing_ = false;
  std::string failure_;            // why the run was ended
  std::thread health_, progress_;  // the last members: they use the others
};

}  // namespace dtrain
