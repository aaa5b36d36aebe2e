// A barrier for a few threads. Waiting threads can spin before they sleep, and the barrier can be aborted.
#pragma once

#include <atomic>
#include <cstdint>

namespace dtrain {

/// A barrier for a fixed number of threads: the last thread that arrives releases all others. Memory written
/// before arriving is visible to all threads afterwards.
class Barrier {
 public:
  /// `spin`: whether waiting threads busy-wait for about a millisecond before they sleep. This is faster only
  /// if each thread has its own core.
  Barrier(int threads, bool spin) : threads_(threads), spin_(spin) {}

  /// Throws Aborted if abort() was called.
  void arrive_and_wait();
  void abort() noexcept;

 private:
  int threads_;
  bool spin_;
  alignas(64) std::atomic<int> arrived_{0};
  alignas(64) std::atomic<uint32_t> generation_{0};
  std::atomic<bool> aborted_{false};
};

}  // namespace dtrain
