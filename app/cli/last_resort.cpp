#include "cli/last_resort.h"

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <dlfcn.h>
#include <exception>
#include <new>
#include <string_view>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define DTRAIN_FOREIGN_MALLOC 1  // the sanitizers replace malloc themselves
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define DTRAIN_FOREIGN_MALLOC 1
#endif
#endif

namespace dtrain {

namespace {

constexpr std::string_view kNoMemory = "error: out of memory\n";
/// Linux also limits the number of memory mappings of a process. GPU drivers and pinned memory need many
/// mappings.
constexpr std::string_view kNoMapping =
    "error: out of memory: the system cannot create another memory mapping. If there is free memory, the "
    "process has reached the maximum number of mappings (/proc/sys/vm/max_map_count); increase it with "
    "`sysctl vm.max_map_count=N`\n";

/// Prints the message and ends the process. Allocates nothing and runs no destructors, because other threads
/// may be in any state.
[[noreturn]] void end_of_memory(std::string_view message = kNoMemory) noexcept {
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, message.data(), message.size());
  ::_exit(1);
}

std::terminate_handler previous_handler = nullptr;

[[noreturn]] void on_terminate() noexcept {
  if (const std::exception_ptr error = std::current_exception()) {
    try {
      std::rethrow_exception(error);
    } catch (const std::bad_alloc&) {
      end_of_memory();
    } catch (...) {
    }
  }
  if (previous_handler) previous_handler();
  std::abort();
}

}  // namespace

void install_last_resort() {
  previous_handler = std::set_terminate(on_terminate);
}

}  // namespace dtrain

#ifndef DTRAIN_FOREIGN_MALLOC

namespace {

/// Allocations of fewer bytes than this are small. If a larger allocation fails, the process continues, and
/// the caller handles or reports the failure.
constexpr size_t kSmall = size_t{1} << 20;

/// Returns the next definition of the function `name` after the one in this file: the function of the C
/// library or of a preloaded allocator.
template <class Function>
Function next(std::atomic<Function>& known, const char* name) {
  Function function = known.load(std::memory_order_relaxed);
  if (!function) {
    function = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
    if (!function) std::abort();  // every C library has these functions
    known.store(function, std::memory_order_relaxed);
  }
  return function;
}

/// Checks the result `memory` of an allocation, and returns it. Ends the process if the allocation is small
/// and has failed.
void* granted(void* memory, size_t bytes) {
  if (!memory && bytes > 0 && bytes < kSmall) dtrain::end_of_memory();
  return memory;
}

// These variables are constinit, so they are initialized before any constructor runs. Constructors may
// allocate memory.
constinit std::atomic<void* (*)(size_t)> next_malloc;
constinit std::atomic<void*(*)(size_t, size_t)> next_calloc, next_memalign, next_aligned_alloc;
constinit std::atomic<void* (*)(void*, size_t)> next_realloc;
constinit std::atomic<void* (*)(void*, size_t, int, int, int, off_t)> next_mmap;
constinit std::atomic<int (*)(void**, size_t, size_t)> next_posix_memalign;

}  // namespace

// These functions replace the allocation functions in the whole process, including its libraries. free() is
// not replaced.
extern "C" {

void* malloc(size_t bytes) noexcept {
  return granted(next(next_malloc, "malloc")(bytes), bytes);
}

void* calloc(size_t count, size_t bytes) noexcept {
  size_t total = 0;
  if (__builtin_mul_overflow(count, bytes, &total)) total = kSmall;
  return granted(next(next_calloc, "calloc")(count, bytes), total);
}

void* realloc(void* old, size_t bytes) noexcept {
  return granted(next(next_realloc, "realloc")(old, bytes), bytes);
}

void* memalign(size_t alignment, size_t bytes) noexcept {
  return granted(next(next_memalign, "memalign")(alignment, bytes), bytes);
}

void* aligned_alloc(size_t alignment, size_t bytes) noexcept {
  return granted(next(next_aligned_alloc, "aligned_alloc")(alignment, bytes), bytes);
}

int posix_memalign(void** memory, size_t alignment, size_t bytes) noexcept {
  const int error = next(next_posix_memalign, "posix_memalign")(memory, alignment, bytes);
  if (error == ENOMEM) granted(nullptr, bytes);
  return error;
}

/// This function is intercepted because oneDNN maps memory for generated code.
void* mmap(void* address, size_t bytes, int protection, int flags, int file, off_t offset) noexcept {
  void* const memory = next(next_mmap, "mmap")(address, bytes, protection, flags, file, offset);
  if (memory == MAP_FAILED && errno == ENOMEM && (flags & MAP_ANONYMOUS) && bytes > 0 && bytes < kSmall)
    dtrain::end_of_memory(dtrain::kNoMapping);
  return memory;
}

}  // extern "C"

#endif
