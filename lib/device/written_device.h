// A device name in a configuration.
#pragma once

#include "config/codec.h"
#include "device/device.h"

namespace dtrain {

/// Maximum number of logical CPU devices: cpu:0 to cpu:1023.
inline constexpr int kMostCpuDevices = 1024;

/// A device with its location in the configuration file.
struct WrittenDevice {
  DeviceId id;
  Mark mark;
};

template <>
struct Codec<WrittenDevice> {
  static bool parse(const ConfigNode& node, const std::string& where, WrittenDevice& out,
                    Diagnostics& diagnostics);
  static ConfigNode write(const WrittenDevice& value) { return ConfigNode::scalar(value.id.str()); }
  static Json schema();
};

}  // namespace dtrain
