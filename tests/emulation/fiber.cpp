#include "emulation/fiber.h"

#include <cstdint>
#include <new>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace dtrain::emulation {
namespace {

constexpr size_t kPage = 4096;
#if defined(__SANITIZE_ADDRESS__)
constexpr size_t kStack = 256 * 1024;
#else
constexpr size_t kStack = 64 * 1024;
#endif

Fiber* starting = nullptr;  // protected by the lock of the machine, like all fibers

}  // namespace

// swapcontext makes a system call on every switch, which would dominate the time of a kernel with barriers.
#if defined(__x86_64__)

extern "C" void dtrain_switch_stack(void** from, void* to);
asm(R"(
.text
.globl dtrain_switch_stack
.type dtrain_switch_stack, @function
dtrain_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size dtrain_switch_stack, .-dtrain_switch_stack
)");

namespace {

void* first_frame(std::byte* stack, void (*entry)()) {
  void** top = reinterpret_cast<void**>(stack + kStack);
  *--top = nullptr;  // there is no return address; this value also aligns the stack as a call does
  *--top = reinterpret_cast<void*>(entry);
  for (int i = 0; i < 6; ++i) *--top = nullptr;
  return top;
}
void release_frame(void*) {}

void switch_stack(void** from, void* to) {
  dtrain_switch_stack(from, to);
}

}  // namespace

#else

namespace {

void* first_frame(std::byte* stack, void (*entry)()) {
  auto* context = new ucontext_t();
  getcontext(context);
  context->uc_stack.ss_sp = stack;
  context->uc_stack.ss_size = kStack;
  makecontext(context, entry, 0);
  return context;
}
void release_frame(void* context) {
  delete static_cast<ucontext_t*>(context);
}

void switch_stack(void** from, void* to) {
  ucontext_t here;
  *from = &here;
  swapcontext(&here, static_cast<ucontext_t*>(to));
}

}  // namespace

#endif

Fiber::Fiber(void (*main)(void*), void* argument) : main_(main), argument_(argument) {
  void* memory = mmap(nullptr, kPage + kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  memory_ = static_cast<std::byte*>(memory);
  mprotect(memory_, kPage, PROT_NONE);
  own_ = first_frame(memory_ + kPage, &Fiber::enter);
}

Fiber::~Fiber() {
  release_frame(own_);
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(memory_, kPage + kStack);
#endif
  munmap(memory_, kPage + kStack);
}

void Fiber::enter() {
  Fiber* self = starting;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &self->resumer_stack_, &self->resumer_stack_bytes_);
#endif
  self->main_(self->argument_);
}

void Fiber::resume() {
  starting = this;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&resumer_fake_, memory_ + kPage, kStack);
#endif
  switch_stack(&resumer_, own_);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(resumer_fake_, nullptr, nullptr);
#endif
}

void Fiber::pause() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&own_fake_, resumer_stack_, resumer_stack_bytes_);
#endif
  switch_stack(&own_, resumer_);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(own_fake_, &resumer_stack_, &resumer_stack_bytes_);
#endif
}

}  // namespace dtrain::emulation
