// Work that a run does not wait for.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "base/threads.h"

namespace dtrain {

/// One piece of work at a time, on a thread of its own. Used by one thread; make it before that is bound to a
/// core, which its thread would inherit.
class Background {
 public:
  Background() : thread_(start_thread("saving", [this] { serve(); })) {}
  /// Waits for the work under way; what it throws then is lost.
  ~Background();
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  /// Begins `work`; the one before must have been waited for.
  void start(std::function<void()> work);
  /// Whether wait() would return at once.
  bool done();
  /// Waits for the work under way, if any, and throws what it threw.
  void wait();

 private:
  void serve();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> work_;  // set: to be done or under way
  std::exception_ptr error_;
  bool stop_ = false;
  std::thread thread_;  // the last member: it uses all others
};

}  // namespace dtrain
