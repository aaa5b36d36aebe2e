// Runs the grid of a kernel on the CPU. A few blocks run concurrently: when the threads of a block wait,
// another block runs. The threads of a block are fibers, which pause when they wait for each other. The lock
// of the machine protects this code, so a process runs one grid at a time.
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

/// Runs the grid. `seed` determines the order of blocks and threads. Returns an error ("" if there is none):
/// threads that wait for each other forever, or lanes of a warp that call different operations.
std::string run_grid(const Grid& grid, uint64_t seed);

// Operations of the running thread.

void sync_threads();
/// Returns the number of threads of the block that have not ended and for which `predicate` holds.
int sync_threads_count(bool predicate);
void sync_warp(uint32_t mask);
/// All lanes of `mask` must call this function. Returns the `value` with which lane `from` called it. If this
/// lane is not in `mask` or has ended, all bits of the result are set.
uint64_t exchange(uint32_t mask, uint64_t value, int from);
/// Returns a bit for each lane of `mask` whose predicate holds.
uint32_t ballot(uint32_t mask, bool predicate);
/// Returns the index of this thread in its warp.
int lane();
uint32_t active_lanes();

}  // namespace dtrain::emulation
