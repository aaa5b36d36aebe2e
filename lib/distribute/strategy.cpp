#include "distribute/strategy.h"

#include <algorithm>

namespace dtrain {

Placement Strategy::place(const Workload& work) const {
  Diagnostics diagnostics;
  Placement placement = place(work, diagnostics);
  diagnostics.throw_if_errors();
  return placement;
}

std::vector<DeviceId> Placement::devices() const {
  std::vector<DeviceId> all;
  for (const std::vector<DeviceId>& replica : replicas) all.insert(all.end(), replica.begin(), replica.end());
  return all;
}

std::vector<DeviceId> Placement::devices_of(int node) const {
  const auto slot = static_cast<size_t>(slot_of(node));
  std::vector<DeviceId> all;
  for (const std::vector<DeviceId>& replica : replicas)
    if (std::find(all.begin(), all.end(), replica[slot]) == all.end()) all.push_back(replica[slot]);
  return all;
}

bool Codec<DeviceList>::parse(const ConfigNode& node, const std::string& where, DeviceList& out,
                              Diagnostics& diagnostics) {
  out = {};
  if (node.is_scalar() && node.text() == "auto") return true;
  std::vector<ConfigNode> names;
  if (node.is_sequence()) {
    names = node.items();
  } else if (node.is_scalar()) {
    names = {node};
  }
  bool good = !names.empty();
  for (const ConfigNode& name : names) {
    WrittenDevice device;
    if (Codec<WrittenDevice>::parse(name, where, device, diagnostics))
      out.devices.push_back(device);
    else
      good = false;
  }
  if (names.empty())
    report_unexpected(node, where, "'auto' or a list of devices such as [cpu:0, cpu:1]", diagnostics);
  return good;
}

ConfigNode Codec<DeviceList>::write(const DeviceList& value) {
  if (value.devices.empty()) return ConfigNode::scalar("auto");
  return Codec<std::vector<WrittenDevice>>::write(value.devices);
}

Json Codec<DeviceList>::schema() {
  const Json device = Codec<WrittenDevice>::schema();
  return Json::object().set(
      "anyOf", Json::array()
                   .push(Json::object().set("const", "auto"))
                   .push(device)
                   .push(Json::object().set("type", "array").set("items", device).set("minItems", 1)));
}

}  // namespace dtrain
