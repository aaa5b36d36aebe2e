// Small kernels for testing the emulation itself.
#pragma once

#include <cstdint>
#include <cuda_runtime.h>

namespace dtrain::emulation {

/// dst[i] = i for every thread, using all dimensions of grid and block.
void number_threads(dim3 grid, dim3 block, int* dst, cudaStream_t stream);
/// Each block records the initial content of shared memory, then writes to it.
void find_shared_memory(int* found, int blocks, cudaStream_t stream);
/// Each block increments the counter before and after a barrier and records both values.
void draw_numbers(int* counter, int* before, int* after, int blocks, cudaStream_t stream);
/// Each block of 256 threads reverses its part of the array through shared memory.
void reverse_blocks(int* data, int blocks, cudaStream_t stream);
/// Like reverse_blocks(), but some threads skip the barrier.
void reverse_without_barrier(int* data, int blocks, cudaStream_t stream);
/// Computes two sums for each warp: dst[warp] over all lanes, and dst[warps + warp] over the even lanes.
void sum_warps(const int* src, int* dst, int warps, cudaStream_t stream);
/// A single warp calls __match_any_sync() on src[lane] twice. The first call is in all lanes and writes to
/// dst[lane]. The second call is only in the even lanes and writes to dst[32 + lane].
void match_lanes(const int* src, unsigned* dst, cudaStream_t stream);
/// Threads with an index of at least `n` end before the barrier.
void end_early(int* dst, int n, cudaStream_t stream);
/// In each warp, half of the threads wait for the other half, and the other half waits for the whole block.
/// This is a deadlock.
void wait_forever(cudaStream_t stream);
/// Half of the lanes of a warp call a vote function, and the other half calls __syncwarp(). This is an error.
void disagree(cudaStream_t stream);
/// Adds the number of threads with an odd index to *counter.
void count_odd(int* counter, int blocks, cudaStream_t stream);
/// data[i] = scale * data[i] + offset.
void scale_add(float* data, float scale, float offset, int n, cudaStream_t stream);
/// Reads 16 bytes at once.
void read_vector(const float* src, float* dst, cudaStream_t stream);

}  // namespace dtrain::emulation
