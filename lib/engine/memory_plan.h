// Plans what a run will hold in each memory, before anything is allocated. These functions depend only on
// their arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device/device.h"

namespace dtrain {

/// Estimated memory of one device of one replica, in bytes.
struct MemoryPlan {
  DeviceId device;
  int replica = 0, slot = 0;  // the replica's rank, and the device's index in the replica
  int64_t share = 0;          // samples of a full batch that this replica processes
  int64_t microbatch = 0;     // most samples of the share that are processed at a time
  int threads = 1;
  size_t parameters = 0, optimizer_slots = 0, gradients = 0, activations = 0;
  size_t staging = 0;    // batches during upload to a GPU, and the workspace of GPU libraries
  size_t data = 0;       // samples kept on a GPU
  size_t metrics = 0;    // accumulators of losses and metrics
  size_t transfers = 0;  // host memory for a GPU's values on their way to or from other processes; a CPU's
  // transfers are part of `activations`
  /// Returns the sum of all parts except `transfers`.
  size_t total() const {
    return parameters + optimizer_slots + gradients + activations + staging + data + metrics;
  }
};

/// Bytes of host memory that a run needs in addition to its replicas on CPUs.
struct HostNeeds {
  size_t metrics = 0;     // totals, and the tables of metrics
  size_t data = 0;        // samples that will be kept but have not been read yet
  size_t read_ahead = 0;  // batches read ahead
  size_t copies = 0;      // copies of the state for saving, and sums of gradients
  size_t transfers = 0;   // GPUs' values on their way to and from other processes (MemoryPlan::transfers)
};

/// Memory that is available.
struct FreeMemory {
  size_t bytes = 0;
  std::string limit;  // where this number comes from, such as "the machine's free memory"
};

/// Planned use of one memory (the host's or a GPU's).
struct MemoryDemand {
  std::optional<int> gpu = {};  // nullopt: the host
  FreeMemory free = {};
  MemoryPlan sum = {};                     // sum of the plans that use this memory
  HostNeeds host = {};                     // zero for a GPU
  std::optional<MemoryPlan> largest = {};  // largest plan that was added

  size_t total() const {
    return sum.total() + host.metrics + host.data + host.read_ahead + host.copies + host.transfers;
  }
  /// Returns the number of missing bytes; negative if memory is left.
  double excess() const { return static_cast<double>(total()) - static_cast<double>(free.bytes); }
  std::string name() const;  // such as "cpu" or "gpu:1"
  /// Returns a text such as "1.2 GB of parameters, 3.4 GB of activations".
  std::string parts() const;
};

/// Adds up the plans of each memory, and adds the transfers of GPUs to the needs of the host. Returns the
/// host first, then each GPU in `gpus` (free memory by index).
std::vector<MemoryDemand> sum_demands(std::span<const MemoryPlan> plans, const HostNeeds& needs,
                                      const FreeMemory& host, const std::map<int, FreeMemory>& gpus);

/// Returns the memory with the least bytes left after its planned use.
const MemoryDemand& scarcest(std::span<const MemoryDemand> demands);

/// Returns the error message if batches of this size do not fit, such as "gpu:0: batches of 64 need 3 GB
/// (...), but 2 GB is available (...)".
std::string shortage(const MemoryDemand& demand, int64_t batch_size);

/// Returns a warning if the host's plan fits only by swapping or by displacing the memory of other programs,
/// because it needs more than `available` bytes; otherwise "".
std::string host_advice(const MemoryDemand& host, size_t available);

}  // namespace dtrain
