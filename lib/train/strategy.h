// How a run is laid over devices, as the configuration says it.
#pragma once

#include <string>
#include <vector>

#include "config/registry.h"
#include "device/device.h"

namespace dtrain {

/// `devices:` - `auto` (all GPUs; the CPU where there is none) or a list of names.
struct DeviceList {
  std::vector<DeviceId> devices;  // empty: auto
  std::vector<Mark> marks;        // where each is written
};

template <>
struct Codec<DeviceList> {
  static bool parse(const ConfigNode& node, const std::string& where, DeviceList& out,
                    Diagnostics& diagnostics);
  static ConfigNode write(const DeviceList& value);
  static Json schema();
};

class Strategy {
 public:
  virtual ~Strategy() = default;
  /// The device of each replica, by rank. Reports those that do not exist here, saying what there is; the
  /// list is empty then.
  virtual std::vector<DeviceId> replicas(Diagnostics& diagnostics) const = 0;
  /// The same; throws UserError.
  std::vector<DeviceId> replicas() const;
  /// How much of the gradient GPUs sum at a time while backward goes on.
  virtual int64_t bucket_bytes() const { return int64_t{25} << 20; }
};

template <>
const Registry<Strategy>& registry<Strategy>();

}  // namespace dtrain
