// A barrier for a few threads that can be aborted, and that spins before it sleeps.
#pragma once

#include <atomic>
#include <cstdint>

namespace dtrain {

/// Every thread of a fixed number arrives; the last releases all. Memory written before arriving is visible
/// after.
class Barrier {
 public:
  /// `spin`: wait busily for about a millisecond before sleeping; for threads that each have a core.
  Barrier(int threads, bool spin) : threads_(threads), spin_(spin) {}

  /// Throws Aborted where abort was called.
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
