// A machine for which a run is checked without using it.
#pragma once

#include <cstdint>
#include <optional>

#include "run/run_config.h"

namespace dtrain {

/// A machine with devices of the same kind. It need not be the machine on which dtrain runs.
struct Machine {
  DeviceId::Kind kind = DeviceId::Kind::gpu;
  int devices = 1;
  int64_t bytes = 0;  // available on each GPU; or on the host, for all cpu:N devices together
  int cores = 1;      // number of cores of the host, for all cpu:N devices together
  double link = 0;    // bytes per second between two devices
};

/// The user's description of the machine. The defaults are this host's GPUs and their free memory or, without
/// GPUs, the devices named by the strategy, and the link of typical_speed().
struct MachineRequest {
  std::optional<int64_t> bytes;  // memory of each GPU
  std::optional<int64_t> devices;
  std::optional<int64_t> link;  // bytes per second
};
/// Returns a machine with GPUs if `request` gives their memory or this host has GPUs. Otherwise returns this
/// host, with the cpu:N devices that the run's strategy names.
Machine machine_for(const RunConfig& config, const MachineRequest& request);

}  // namespace dtrain
