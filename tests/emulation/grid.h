// Runs a kernel's grid on the CPU: a few blocks at once, which switch where their threads wait. The threads
// of a block are fibers that pause where they wait for each other. Protected by the machine's lock: one grid
// at a time per process.
#pragma once

#include <cstdint>
#include <string>
#include <vector_types.h>

namespace dtrain::emulation {

struct Grid {
  dim3 blocks, threads;
  void (*thread)(const void* arguments);  // code of each thread
  const void* arguments;
};

/// Runs the grid; `seed` determines the order of blocks and threads. Returns an error ("" if none): threads
/// that wait for each other forever, or divergent warps.
std::string run_grid(const Grid& grid, uint64_t seed);

// Operations of the running thread.

void sync_threads();
/// Returns the number of threads of the block that have not ended and for which `predicate` holds.
int sync_threads_count(bool predicate);
void sync_warp(uint32_t mask);
/// Shares `value` with the lanes of `mask` and returns the value of lane `from`; all bits set if that lane
/// did not participate.
uint64_t exchange(uint32_t mask, uint64_t value, int from);
/// Returns a bit for each lane of `mask` whose predicate holds.
uint32_t ballot(uint32_t mask, bool predicate);
/// Returns the index of this thread in its warp.
int lane();
uint32_t active_lanes();

}  // namespace dtrain::emulation
