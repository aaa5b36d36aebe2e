// OpenMP parallel regions on the runtime that oneDNN uses. With `omp parallel` some compilers (clang) link a
// second runtime, and a process with two runtimes has two thread pools competing for the same cores. Regions
// are therefore entered through libgomp's interface, which LLVM's runtime also provides. `omp simd` needs no
// runtime.
#pragma once

#include <type_traits>

extern "C" {
// Declared here because clang does not find omp.h if only GCC has it.
int omp_get_thread_num() noexcept;
int omp_get_num_threads() noexcept;
void omp_set_num_threads(int) noexcept;
void omp_set_dynamic(int) noexcept;
void omp_set_max_active_levels(int) noexcept;
// GCC compiles `#pragma omp parallel num_threads(threads)` to a call of this function.
void GOMP_parallel(void (*region)(void*), void* data, unsigned threads, unsigned flags);
}

namespace dtrain::cpu {

/// Calls body(thread, team) on every thread of a team of `threads`; the calling thread is thread 0. The team
/// may be smaller than requested. An exception thrown by `body` terminates the process.
template <class Body>
void openmp_region(int threads, const Body& body) {
  GOMP_parallel(
      [](void* data) noexcept {
        (*static_cast<const Body*>(data))(omp_get_thread_num(), omp_get_num_threads());
      },
      const_cast<Body*>(&body), static_cast<unsigned>(threads), 0);
}

}  // namespace dtrain::cpu
