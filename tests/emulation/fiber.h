// Code with its own stack that can pause in the middle.
#pragma once

#include <cstddef>

namespace dtrain::emulation {

/// A fiber runs main(argument). Each call of resume() runs it until its next call of pause(). main must never
/// return. A fiber stays on the thread that first resumes it. It must not be destroyed if it is paused in
/// code that owns resources.
class Fiber {
 public:
  Fiber(void (*main)(void*), void* argument);
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  ~Fiber();

  void resume();
  /// Called by the code of this fiber: switches back to the code that has resumed the fiber.
  void pause();

 private:
  static void enter();

  void (*main_)(void*);
  void* argument_;
  std::byte* memory_;  // a guard page, then the stack
  // The states of the fiber and of its resumer while they are paused: stack pointers, or ucontext_t.
  void* own_ = nullptr;
  void* resumer_ = nullptr;
  // The fake stacks of AddressSanitizer, which are used only in builds with AddressSanitizer.
  [[maybe_unused]] void* own_fake_ = nullptr;
  [[maybe_unused]] void* resumer_fake_ = nullptr;
  [[maybe_unused]] const void* resumer_stack_ = nullptr;
  [[maybe_unused]] size_t resumer_stack_bytes_ = 0;
};

}  // namespace dtrain::emulation
