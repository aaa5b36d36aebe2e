// A machine on which a run may be tried without being there.
#pragma once

#include <cstdint>
#include <optional>

#include "run/run_config.h"

namespace dtrain {

/// Devices that are alike, of a machine that need not be this one.
struct Machine {
  DeviceId::Kind kind = DeviceId::Kind::gpu;
  int devices = 1;
  int64_t bytes = 0;  // that a run may have of each GPU; of the host, for all devices cpu:N together
  int cores = 1;      // of the host, for all devices cpu:N together
  double link = 0;    // bytes a second, from one device to another
};

/// What the user says of the machine. What is not said: GPUs are this host's, with what is free of their
/// memory; without any, the devices are those that the strategy names; the link is typical_speed()'s.
struct MachineRequest {
  std::optional<int64_t> bytes;  // of each GPU
  std::optional<int64_t> devices;
  std::optional<int64_t> link;  // bytes a second
};
/// GPUs where their memory is given or there are any here; or else this host, as the devices cpu:N that the
/// run's strategy names, which need not be many.
Machine machine_for(const RunConfig& config, const MachineRequest& request);

}  // namespace dtrain
