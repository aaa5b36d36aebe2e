// Runs a kernel's grid on the CPU: up to a few blocks at once, which take turns where their threads wait, the
// threads of a block as fibers that pause where they wait for each other. Under the machine's lock: one grid
// at a time in the process.
#pragma once

#include <cstdint>
#include <string>
#include <vector_types.h>

namespace dtrain::emulation {

struct Grid {
  dim3 blocks, threads;
  void (*thread)(const void* arguments);  // what each thread does
  const void* arguments;
};

/// The order of blocks and threads follows from `seed`. Returns what went wrong ("" if nothing): threads that
/// wait for each other forever, or warps that disagree.
std::string run_grid(const Grid& grid, uint64_t seed);

// What the running thread does.

void sync_threads();
/// The number of threads of the block, among those that have not ended, for which `predicate` holds.
int sync_threads_count(bool predicate);
void sync_warp(uint32_t mask);
/// Gives `value` to the lanes of `mask`, and takes the one of lane `from`; all bits set where that lane gave
/// none.
uint64_t exchange(uint32_t mask, uint64_t value, int from);
/// A bit for each lane of `mask` whose predicate holds.
uint32_t ballot(uint32_t mask, bool predicate);
/// This thread's place in its warp.
int lane();
uint32_t active_lanes();

}  // namespace dtrain::emulation
