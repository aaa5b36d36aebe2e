// A pool of threads that run tasks.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <queue>
#include <string>
#include <thread>
#include <vector>

namespace dtrain {

/// A pool of threads that run tasks. Tasks start in the order of submit(); with a single thread, they run one
/// after the other. Only one thread may use the pool. The pool's threads inherit the core binding of the
/// thread that constructs the pool. (Tasks must not wait for each other. Threads that wait for each other,
/// such as those of the replicas, need a Team: collective/team.h.)
class ThreadPool {
 public:
  /// Starts `threads` threads, or fewer if the system does not allow this number. If the system allows fewer
  /// than `least` threads, throws Error with the pool's purpose ("reading ahead").
  ThreadPool(const std::string& purpose, int64_t threads, int64_t least = 1);
  /// Waits until all tasks have run. Their exceptions are lost.
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// Returns the number of threads.
  int64_t size() const { return static_cast<int64_t>(threads_.size()); }
  /// Adds a task. The pool must have a thread.
  void submit(std::function<void()> task);
  /// Returns true if all tasks have run, so that wait() would return at once.
  bool idle();
  /// Waits until all tasks have run and their functions have been destroyed. If tasks have thrown exceptions
  /// since the last call, rethrows the first exception.
  void wait();
  /// Removes all tasks that have not started, and waits for the running tasks.
  void cancel();

 private:
  void serve();
  void join();
  bool has_finished() const { return tasks_.empty() && running_ == 0; }

  std::mutex mutex_;
  /// `changed_` wakes the threads of the pool. `finished_` wakes the thread that waits in wait() or cancel().
  std::condition_variable changed_, finished_;
  std::queue<std::function<void()>> tasks_;  // tasks that have not started
  int64_t running_ = 0;
  std::exception_ptr error_;
  bool stop_ = false;
  std::vector<std::thread> threads_;  // the last member, because the threads use all other members
};

}  // namespace dtrain
