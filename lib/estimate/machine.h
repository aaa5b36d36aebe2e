// Describes a machine, to check whether a run fits on it. The machine need not exist.
#pragma once

#include <cstdint>
#include <optional>

#include "run/run_config.h"

namespace dtrain {

/// The origin of the number of devices: the request, the GPUs of this host, or the devices that the
/// configuration names.
enum class DeviceCount { requested, of_host, of_configuration };

/// A machine with devices of the same kind. It need not be the machine on which dtrain runs.
struct Machine {
  DeviceId::Kind kind = DeviceId::Kind::gpu;
  int devices = 1;
  int64_t bytes = 0;  // memory of each GPU, or memory of the host that all cpu:N devices share, in bytes
  int cores = 1;      // cores of the host, which all cpu:N devices share
  double link = 0;    // speed of copies between two devices, in bytes per second
  // The requested memory of each GPU, from which `bytes` is computed; 0 if the request does not specify it.
  int64_t requested_bytes = 0;
  DeviceCount device_count = DeviceCount::requested;
};

/// The machine as the user describes it. By default, it has this host's GPUs with their free memory. If the
/// host has no GPUs, it has the devices that the configuration names. The default of `link` is the link speed
/// that typical_speed() returns.
struct MachineRequest {
  std::optional<int64_t> bytes;  // memory of each GPU
  std::optional<int64_t> devices;
  std::optional<int64_t> link;  // bytes per second
};
/// Returns the machine to check. Its `bytes` do not include the part of a GPU's memory that CUDA and the
/// libraries use (usable_gpu_bytes()). It has GPUs if `request` gives the memory of GPUs, or if this host has
/// GPUs. Otherwise it is this host, with the cpu:N devices that the configuration names.
Machine machine_for(const RunConfig& config, const MachineRequest& request);

}  // namespace dtrain
