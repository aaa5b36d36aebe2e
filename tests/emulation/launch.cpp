#include <set>
#include <string>
#include <utility>

#include "emulation/grid.h"
#include "emulation/queue.h"

namespace dtrain::emulation {

namespace {
std::set<std::pair<int, const void*>> loaded;  // (device, kernel) pairs that were loaded
}

void load_kernel(const void* kernel) {
  const auto lock = lock_machine();
  if (loaded.emplace(current_device(), kernel).second) wait_for_all_devices("a kernel's first launch");
}

void unload_kernels() {
  const auto lock = lock_machine();
  loaded.clear();
}

void run_checked(const Grid& grid) {
  const std::string failure = run_grid(grid, random_number());
  if (!failure.empty()) fail_device(failure);
}

cudaError_t enqueue_grid(dim3 blocks, dim3 threads, cudaStream_t stream, size_t argument_bytes,
                         std::function<void(Grid)> run) {
  const auto lock = lock_machine();
  const uint64_t in_block = uint64_t{threads.x} * threads.y * threads.z;
  if (in_block == 0 || in_block > 1024 || threads.z > 64 || blocks.x == 0 || blocks.y == 0 || blocks.z == 0 ||
      blocks.x > 0x7fffffffu || blocks.y > 0xffffu || blocks.z > 0xffffu) {
    return answer(cudaErrorInvalidConfiguration);
  }
  // CUDA 12.1 raised the limit to 32764 bytes for compute capability 7.0 and later.
  if (argument_bytes > 4096) return answer(cudaErrorInvalidValue);
  if (stream && stream != cudaStreamLegacy && stream->device != current_device())
    return answer(cudaErrorInvalidResourceHandle);
  if (const cudaError_t status = kernel_status(current_device()); status != cudaSuccess)
    return answer(status);
  Grid grid{};
  grid.blocks = blocks;
  grid.threads = threads;
  counts().threads += static_cast<int64_t>(in_block * blocks.x * blocks.y * blocks.z);
  return answer(enqueue(stream, [grid, run = std::move(run)] { run(grid); }));
}

}  // namespace dtrain::emulation
