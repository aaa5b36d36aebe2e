// Finds out which cores and GPUs of a machine belong to which process of a run. All processes must call these
// functions.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "collective/range.h"
#include "collective/world.h"

namespace dtrain {

/// The result of place_among_equals(): `sharing` is the number of processes that passed the same text as this
/// process, and `index` is the index of this process among them.
struct SharedPlace {
  size_t index = 0, sharing = 1;

  /// Divides a list of n elements among the `sharing` processes, and returns the part of this process.
  Range share_of(size_t n) const;
};
SharedPlace place_among_equals(World& world, const std::string& mine);

/// Returns the GPUs of this process, as a range of the GPUs that CUDA lists. Processes for which CUDA lists
/// the same GPUs divide them, unless there are fewer GPUs than processes. If a launcher has given each
/// process its own GPUs, each process gets all GPUs of its list. The list comes from CUDA and not from
/// CUDA_VISIBLE_DEVICES, because equal numbers in this variable may mean different GPUs in different
/// containers. Initializes the CUDA driver if a GPU is expected, but creates no context.
Range own_gpus(World& world);

/// Returns a text such as "processes 0 and 1 both use the GPU 0000:19:00.0 of node1" if two processes use the
/// same GPU, or two MIG instances of the same GPU, which NCCL cannot connect. Returns "" otherwise. `gpus`:
/// the indices of the GPUs that this process uses. All processes get the same result.
std::string find_shared_gpu(World& world, std::span<const int> gpus);

}  // namespace dtrain
