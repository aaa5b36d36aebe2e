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

/// Which devices compute what.
struct Placement {
  /// The devices of each replica, by rank; of one replica, by slot.
  std::vector<std::vector<DeviceId>> replicas;
  /// The slot of each node of the graph; empty where all are on slot 0.
  std::vector<int> slots;

  std::vector<DeviceId> devices() const;  // all replicas'
};

class Strategy {
 public:
  virtual ~Strategy() = default;
  /// Reports devices that do not exist here, saying what there is; there are no replicas then.
  virtual Placement place(Diagnostics& diagnostics) const = 0;
  /// The same; throws UserError.
  Placement place() const;
  /// How much of the gradient GPUs sum at a time while backward goes on.
  virtual int64_t bucket_bytes() const { return int64_t{25} << 20; }
};

template <>
const Registry<Strategy>& registry<Strategy>();

}  // namespace dtrain
