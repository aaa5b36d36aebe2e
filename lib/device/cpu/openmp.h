// Parallel regions on the OpenMP runtime that oneDNN uses. With `omp parallel`, some compilers (clang) link a
// second OpenMP runtime. The process then has two thread pools, which compete for the same cores. To avoid
// this, parallel regions are started through the interface of libgomp, which LLVM's runtime also provides.
// `omp simd` may be used, because it needs no runtime.
#pragma once

#include <type_traits>

extern "C" {
// Declared here because clang does not find omp.h on machines where only GCC has this header.
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
