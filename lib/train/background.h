// Runs work on a background thread.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "base/threads.h"

namespace dtrain {

/// Runs one task at a time on a thread owned by this object. To be used by one thread. Construct it before
/// binding that thread to a core, because the new thread inherits the binding.
class Background {
 public:
  Background() : thread_(start_thread("saving", [this] { serve(); })) {}
  /// Waits for the running task; an exception of that task is lost.
  ~Background();
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  /// Starts `work`. The previous task must have been waited for.
  void start(std::function<void()> work);
  /// Returns whether wait() would return at once.
  bool done();
  /// Waits for the running task, if any, and rethrows its exception.
  void wait();

 private:
  void serve();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> work_;  // queued or running task; empty if idle
  std::exception_ptr error_;
  bool stop_ = false;
  std::thread thread_;  // the last member: it uses all the others
};

}  // namespace dtrain
