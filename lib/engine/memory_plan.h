// Plans how much host memory and GPU memory a run uses, before anything is allocated. The results of these
// functions depend only on their arguments.
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
  int64_t share = 0;          // number of samples of a full batch that this replica processes
  int64_t microbatch = 0;     // maximum number of these samples that are processed at the same time
  int threads = 1;
  size_t parameters = 0, optimizer_slots = 0, gradients = 0, activations = 0;
  size_t staging = 0;  // batches during upload to a GPU, and the workspace of GPU libraries
  size_t data = 0;     // samples that are kept on a GPU
  size_t metrics = 0;  // accumulators of losses and metrics
  // Host memory for the values that a GPU sends to and receives from other processes. 0 for a CPU, whose
  // transfers are part of `activations`.
  size_t transfers = 0;
  /// Returns the sum of all parts except `transfers`.
  size_t total() const {
    return parameters + optimizer_slots + gradients + activations + staging + data + metrics;
  }
};

/// Bytes of host memory that a run needs in addition to its replicas on CPUs.
struct HostNeeds {
  size_t metrics = 0;     // totals of steps, and the tables of metrics
  size_t data = 0;        // samples that the host will keep but has not read yet
  size_t read_ahead = 0;  // batches read ahead
  size_t copies = 0;      // copies of the state for saving, and sums of gradients
  size_t transfers = 0;   // values that GPUs send to and receive from other processes (MemoryPlan::transfers)
};

/// Memory that is available.
struct FreeMemory {
  size_t bytes = 0;
  std::string limit;  // origin of the number of bytes, such as "the machine's free memory"
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
  /// Returns the number of missing bytes. The number is negative if memory is left.
  double excess() const { return static_cast<double>(total()) - static_cast<double>(free.bytes); }
  std::string name() const;  // such as "cpu" or "gpu:1"
  /// Returns a text such as "1.2 GB of parameters, 3.4 GB of activations".
  std::string parts() const;
};

/// Adds up the plans of the devices that use the same memory. Adds the transfers of GPUs to the needs of the
/// host. Returns the demand of the host first, and then the demand of each GPU in `gpus`, which contains the
/// free memory by GPU index.
std::vector<MemoryDemand> sum_demands(std::span<const MemoryPlan> plans, const HostNeeds& needs,
                                      const FreeMemory& host, const std::map<int, FreeMemory>& gpus);

/// Returns the demand with the largest excess(), which is the memory with the fewest bytes left.
const MemoryDemand& scarcest(std::span<const MemoryDemand> demands);

/// Returns the error message for batches of this size that do not fit, such as "gpu:0: batches of 64 need 3
/// GB (...), but 2 GB is available (...)".
std::string shortage(const MemoryDemand& demand, int64_t batch_size);

/// Returns a warning if the host's plan needs more than `available` bytes and therefore fits only by swapping
/// or by displacing the memory of other programs. Otherwise returns "".
std::string host_advice(const MemoryDemand& host, size_t available);

}  // namespace dtrain
