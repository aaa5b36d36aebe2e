// Devices that wait for each other forever, which none of them reports.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace dtrain {

/// Watches the threads that wait for devices: NCCL's documentation warns that captured steps of several GPUs
/// of one process can deadlock, and then no call returns and no device has failed. Asks no device anything,
/// as that might not return either.
class StandstillWatch {
 public:
  using Seconds = std::chrono::duration<double>;
  /// Calls `end`, once and by a thread of its own, where devices are waited for and nothing has begun or
  /// ended for so long.
  StandstillWatch(Seconds limit, std::function<void()> end);
  ~StandstillWatch();
  StandstillWatch(const StandstillWatch&) = delete;
  StandstillWatch& operator=(const StandstillWatch&) = delete;

  /// For as long as it exists, the calling thread does what a watch is told of; where there is a watch.
  class Scope {
   public:
    Scope(StandstillWatch* watch, std::atomic<int> StandstillWatch::*count);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    StandstillWatch* watch_;
    std::atomic<int> StandstillWatch::*count_;
  };
  /// Gives devices work, or waits for them.
  static Scope waiting(StandstillWatch* watch) { return {watch, &StandstillWatch::waiting_}; }
  /// Reads samples, which may take as long as it takes.
  static Scope reading(StandstillWatch* watch) { return {watch, &StandstillWatch::reading_}; }

 private:
  using Clock = std::chrono::steady_clock;

  void move() { last_move_ = Clock::now().time_since_epoch().count(); }
  bool stands_still() const;
  void watch(Clock::time_point looked);

  const Seconds limit_;
  const std::function<void()> end_;
  std::atomic<int> waiting_{0}, reading_{0};
  std::atomic<Clock::rep> last_move_{0};  // when something last began or ended
  std::mutex mutex_;
  std::condition_variable changed_;
  bool closing_ = false;
  std::thread thread_;  // the last member: it uses the others
};

}  // namespace dtrain
