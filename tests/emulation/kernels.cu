#include "emulation/kernels.h"
#include "ops/cuda/launch.h"
#include "ops/cuda/types.h"

namespace dtrain::emulation {
namespace {

constexpr unsigned kBlock = 256;
constexpr unsigned kAll = 0xffffffffu;

__global__ void number_kernel(int* dst) {
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  const unsigned i = block * (blockDim.x * blockDim.y * blockDim.z) + thread;
  dst[i] = static_cast<int>(i);
}

template <bool kBarrier>
__global__ void __launch_bounds__(kBlock) reverse_kernel(int* data) {
  __shared__ int part[kBlock];
  int* own = data + blockIdx.x * kBlock;
  part[threadIdx.x] = own[threadIdx.x];
  if constexpr (kBarrier) __syncthreads();
  own[threadIdx.x] = part[kBlock - 1 - threadIdx.x];
}

__global__ void find_shared_memory_kernel(int* found) {
  __shared__ int left;
  found[blockIdx.x] = left;
  left = 5;
}

__global__ void draw_numbers_kernel(int* counter, int* before, int* after) {
  if (threadIdx.x == 0) before[blockIdx.x] = atomicAdd(counter, 1);
  __syncthreads();
  if (threadIdx.x == 0) after[blockIdx.x] = atomicAdd(counter, 1);
}

__global__ void sum_warps_kernel(const int* src, int* dst, int warps) {
  const int thread = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x), lane = thread % 32;
  int all = src[thread];
  for (int distance = 16; distance > 0; distance /= 2) all += __shfl_xor_sync(kAll, all, distance);
  int even = lane % 2 == 0 ? src[thread] : 0;
  for (unsigned distance = 16; distance > 0; distance /= 2) even += __shfl_down_sync(kAll, even, distance);
  if (lane != 0) return;
  dst[thread / 32] = all;
  dst[warps + thread / 32] = even;
}

__global__ void match_lanes_kernel(const int* src, unsigned* dst) {
  const auto lane = static_cast<int>(threadIdx.x);
  dst[lane] = __match_any_sync(kAll, src[lane]);
  if (lane % 2 == 0) dst[32 + lane] = __match_any_sync(0x55555555u, src[lane]);
}

__global__ void end_early_kernel(int* dst, int n) {
  const int i = static_cast<int>(threadIdx.x);
  if (i >= n) return;
  __shared__ int sum;
  if (i == 0) sum = 0;
  __syncthreads();
  atomicAdd(&sum, 1);
  __syncthreads();
  dst[i] = sum;
}

__global__ void wait_forever_kernel() {
  if (threadIdx.x % 2 == 0)
    __syncthreads();
  else
    __syncwarp();
}

__global__ void disagree_kernel() {
  if (threadIdx.x % 2 == 0)
    __ballot_sync(kAll, 1);
  else
    __syncwarp();
}

__global__ void count_odd_kernel(int* counter) {
  const int odd = __syncthreads_count(threadIdx.x % 2 == 1);
  const unsigned lanes = __ballot_sync(kAll, threadIdx.x % 2 == 1);
  if (threadIdx.x == 0 && lanes == 0xaaaaaaaau) atomicAdd(counter, odd);
}

__global__ void scale_add_kernel(float* data, float scale, float offset, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) data[i] = scale * data[i] + offset;
}

__global__ void read_vector_kernel(const float* src, float* dst) {
  using Four = cuda::Vector<float, 4>;
  const Four four = *reinterpret_cast<const Four*>(src);
  *dst = four.v[0] + four.v[1] + four.v[2] + four.v[3];
}

}  // namespace

void number_threads(dim3 grid, dim3 block, int* dst, cudaStream_t stream) {
  cuda::launch(number_kernel, grid, block, stream, dst);
}
void find_shared_memory(int* found, int blocks, cudaStream_t stream) {
  cuda::launch(find_shared_memory_kernel, static_cast<unsigned>(blocks), 1, stream, found);
}
void draw_numbers(int* counter, int* before, int* after, int blocks, cudaStream_t stream) {
  cuda::launch(draw_numbers_kernel, static_cast<unsigned>(blocks), 64, stream, counter, before, after);
}
void reverse_blocks(int* data, int blocks, cudaStream_t stream) {
  cuda::launch(reverse_kernel<true>, static_cast<unsigned>(blocks), kBlock, stream, data);
}
void reverse_without_barrier(int* data, int blocks, cudaStream_t stream) {
  cuda::launch(reverse_kernel<false>, static_cast<unsigned>(blocks), kBlock, stream, data);
}
void sum_warps(const int* src, int* dst, int warps, cudaStream_t stream) {
  cuda::launch(sum_warps_kernel, static_cast<unsigned>(warps), 32, stream, src, dst, warps);
}
void match_lanes(const int* src, unsigned* dst, cudaStream_t stream) {
  cuda::launch(match_lanes_kernel, 1, 32, stream, src, dst);
}
void end_early(int* dst, int n, cudaStream_t stream) {
  cuda::launch(end_early_kernel, 1, 128, stream, dst, n);
}
void wait_forever(cudaStream_t stream) {
  cuda::launch(wait_forever_kernel, 1, 64, stream);
}
void disagree(cudaStream_t stream) {
  cuda::launch(disagree_kernel, 1, 32, stream);
}
void count_odd(int* counter, int blocks, cudaStream_t stream) {
  cuda::launch(count_odd_kernel, static_cast<unsigned>(blocks), kBlock, stream, counter);
}
void scale_add(float* data, float scale, float offset, int n, cudaStream_t stream) {
  cuda::launch(scale_add_kernel, static_cast<unsigned>(n + 255) / 256, 256, stream, data, scale, offset, n);
}
void read_vector(const float* src, float* dst, cudaStream_t stream) {
  cuda::launch(read_vector_kernel, 1, 1, stream, src, dst);
}

}  // namespace dtrain::emulation
