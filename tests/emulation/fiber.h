// A piece of code with a stack of its own that can pause in the middle.
#pragma once

#include <cstddef>

namespace dtrain::emulation {

/// Runs main(argument) up to its next pause() whenever it is resumed; main must never return. Stays on the
/// thread that resumes it first. Never destroyed while it is paused in code that owns something.
class Fiber {
 public:
  Fiber(void (*main)(void*), void* argument);
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  ~Fiber();

  void resume();
  /// Called on the fiber that runs: back to where it was resumed.
  void pause();

 private:
  static void enter();

  void (*main_)(void*);
  void* argument_;
  std::byte* memory_;    // a page that nobody may touch, then the stack
  void* own_ = nullptr;  // where each side goes on: stack pointers, or ucontext_t
  void* resumer_ = nullptr;
  // AddressSanitizer's second stacks, which are used where it is.
  [[maybe_unused]] void* own_fake_ = nullptr;
  [[maybe_unused]] void* resumer_fake_ = nullptr;
  [[maybe_unused]] const void* resumer_stack_ = nullptr;
  [[maybe_unused]] size_t resumer_stack_bytes_ = 0;
};

}  // namespace dtrain::emulation
