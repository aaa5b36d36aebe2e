#include "device/written_device.h"

#include <fmt/format.h>

namespace dtrain {

bool Codec<WrittenDevice>::parse(const ConfigNode& node, const std::string& where, WrittenDevice& out,
                                 Diagnostics& diagnostics) {
  const auto device = node.is_scalar() ? DeviceId::parse(node.text()) : std::nullopt;
  if (!device) return report_unexpected(node, where, "a device such as cpu:0 or gpu:1", diagnostics);
  if (device->kind == DeviceId::Kind::cpu && device->index >= kMostCpuDevices)
    return report_unexpected(
        node, where, fmt::format("a CPU device from cpu:0 to cpu:{}", kMostCpuDevices - 1), diagnostics);
  out = {*device, node.mark()};
  return true;
}

Json Codec<WrittenDevice>::schema() {
  return json_type("string").set("title", "device").set("pattern", "^(cpu|gpu):[0-9]+$");
}

}  // namespace dtrain
