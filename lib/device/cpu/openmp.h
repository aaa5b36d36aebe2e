// OpenMP, by the runtime that oneDNN runs on. A compiler's `omp parallel` may bring a runtime of its own
// (clang's does), and a process with two of them has two sets of threads on the same cores; so regions are
// entered here, through libgomp's interface, which LLVM's runtime has as well. `omp simd` needs no runtime.
#pragma once

#include <type_traits>

extern "C" {
// Of omp.h, which clang does not find where only GCC has it.
int omp_get_thread_num() noexcept;
int omp_get_num_threads() noexcept;
void omp_set_num_threads(int) noexcept;
void omp_set_dynamic(int) noexcept;
void omp_set_max_active_levels(int) noexcept;
// What GCC makes of `#pragma omp parallel num_threads(threads)`.
void GOMP_parallel(void (*region)(void*), void* data, unsigned threads, unsigned flags);
}

namespace dtrain::cpu {

/// body(thread, team) on every thread of a team of `threads`: the calling one is thread 0. The team may have
/// fewer threads than that. What a body throws ends the process.
template <class Body>
void openmp_region(int threads, const Body& body) {
  GOMP_parallel(
      [](void* data) noexcept {
        (*static_cast<const Body*>(data))(omp_get_thread_num(), omp_get_num_threads());
      },
      const_cast<Body*>(&body), static_cast<unsigned>(threads), 0);
}

}  // namespace dtrain::cpu
