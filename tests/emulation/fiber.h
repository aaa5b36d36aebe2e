// Code with its own stack that can pause in the middle.
#pragma once

#include <cstddef>

namespace dtrain::emulation {

/// Each resume runs main(argument) up to its next pause(); main must never return. A fiber stays on the
/// thread that first resumes it. It must not be destroyed while paused in code that owns resources.
class Fiber {
 public:
  Fiber(void (*main)(void*), void* argument);
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  ~Fiber();

  void resume();
  /// Switches from the running fiber, which must be this one, back to the code that resumed it.
  void pause();

 private:
  static void enter();

  void (*main_)(void*);
  void* argument_;
  std::byte* memory_;    // a guard page, then the stack
  void* own_ = nullptr;  // where each side continues: stack pointers, or ucontext_t
  void* resumer_ = nullptr;
  // AddressSanitizer's fake stacks, used only in its builds.
  [[maybe_unused]] void* own_fake_ = nullptr;
  [[maybe_unused]] void* resumer_fake_ = nullptr;
  [[maybe_unused]] const void* resumer_stack_ = nullptr;
  [[maybe_unused]] size_t resumer_stack_bytes_ = 0;
};

}  // namespace dtrain::emulation
