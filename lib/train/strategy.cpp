#include "train/strategy.h"

#include <algorithm>

#include <fmt/format.h>

namespace dtrain {

namespace {

/// The list, or what `auto` means on this machine; empty where some device is not there.
std::vector<DeviceId> resolve(const DeviceList& list, Diagnostics& diagnostics) {
  const GpuPresence gpus = gpu_presence();
  if (list.devices.empty()) {
    std::vector<DeviceId> all;
    for (int i = 0; i < gpus.count; ++i) all.push_back({DeviceId::Kind::gpu, i});
    if (all.empty()) all.push_back({});
    return all;
  }
  bool good = true;
  for (size_t i = 0; i < list.devices.size(); ++i) {
    const DeviceId& device = list.devices[i];
    if (device.kind == DeviceId::Kind::cpu || device.index < gpus.count) continue;
    good = false;
    diagnostics.error(
        list.marks[i],
        gpus.count == 0
            ? fmt::format("{}: no GPU ({}); there are cpu:0, cpu:1, ...", device.str(), gpus.reason)
        : gpus.count == 1
            ? fmt::format("{}: this machine has gpu:0 only", device.str())
            : fmt::format("{}: this machine has gpu:0 to gpu:{}", device.str(), gpus.count - 1));
  }
  return good ? list.devices : std::vector<DeviceId>();
}

/// Each replica is a thread.
constexpr int64_t kMostReplicas = 1024;

Check<DeviceList> at_most(int64_t most) {
  return {fmt::format("at most {} devices", most),
          [most](const DeviceList& list) { return std::ssize(list.devices) <= most; },
          Json::object().set("maxItems", most)};
}

struct SingleOptions {
  DeviceList device;
};

/// One device. What every other strategy is compared with.
class Single final : public Strategy {
 public:
  explicit Single(const SingleOptions& options) : options_(options) {}
  Placement place(Diagnostics& diagnostics) const override {
    const std::vector<DeviceId> devices = resolve(options_.device, diagnostics);
    Placement placement;
    if (!devices.empty()) placement.replicas = {{devices[0]}};
    return placement;
  }

 private:
  SingleOptions options_;
};

struct MirroredOptions {
  DeviceList devices;
  std::optional<int64_t> replicas;
  double bucket_megabytes = 25;
};

/// The whole model on every replica, the global batch cut among them.
class Mirrored final : public Strategy {
 public:
  explicit Mirrored(const MirroredOptions& options) : options_(options) {}
  Placement place(Diagnostics& diagnostics) const override {
    const std::vector<DeviceId> devices = resolve(options_.devices, diagnostics);
    if (devices.empty()) return {};
    const auto count = static_cast<size_t>(options_.replicas.value_or(static_cast<int64_t>(devices.size())));
    Placement placement;
    for (size_t i = 0; i < count; ++i) placement.replicas.push_back({devices[i % devices.size()]});
    return placement;
  }
  int64_t bucket_bytes() const override {
    return static_cast<int64_t>(options_.bucket_megabytes * (1 << 20));
  }

 private:
  MirroredOptions options_;
};

}  // namespace

Placement Strategy::place() const {
  Diagnostics diagnostics;
  Placement placement = place(diagnostics);
  diagnostics.throw_if_errors();
  return placement;
}

std::vector<DeviceId> Placement::devices() const {
  std::vector<DeviceId> all;
  for (const std::vector<DeviceId>& replica : replicas) all.insert(all.end(), replica.begin(), replica.end());
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
    const auto device = name.is_scalar() ? DeviceId::parse(name.text()) : std::nullopt;
    if (device) {
      out.devices.push_back(*device);
      out.marks.push_back(name.mark());
      continue;
    }
    diagnostics.error(
        name, fmt::format("{}: expected a device such as cpu:0 or gpu:1, found {}", where, name.describe()));
    good = false;
  }
  if (names.empty())
    diagnostics.error(
        node, fmt::format("{}: expected 'auto' or a list of devices such as [cpu:0, cpu:1], found {}", where,
                          node.describe()));
  return good;
}

ConfigNode Codec<DeviceList>::write(const DeviceList& value) {
  if (value.devices.empty()) return ConfigNode::scalar("auto");
  std::vector<ConfigNode> names;
  for (const DeviceId& device : value.devices) names.push_back(ConfigNode::scalar(device.str()));
  return ConfigNode::sequence(std::move(names));
}

Json Codec<DeviceList>::schema() {
  const Json device =
      Json::object().set("type", "string").set("title", "device").set("pattern", "^(cpu|gpu):[0-9]+$");
  return Json::object().set(
      "anyOf", Json::array()
                   .push(Json::object().set("const", "auto"))
                   .push(device)
                   .push(Json::object().set("type", "array").set("items", device).set("minItems", 1)));
}

template <>
const Registry<Strategy>& registry<Strategy>() {
  static const Registry<Strategy> table = [] {
    Registry<Strategy> t("strategy");
    Check<DeviceList> at_most_one = at_most(1);
    at_most_one.expected = "one device, or auto (mirrored is for several)";
    t.add<Single>("single",
                  Schema<SingleOptions>("The model on one device.")
                      .example("{device: \"gpu:0\"}")
                      .optional("device", &SingleOptions::device, "the device, or auto", at_most_one));
    t.add<Mirrored>(
        "mirrored",
        Schema<MirroredOptions>("The whole model on every replica, each batch cut into contiguous shares.")
            .example("{devices: [\"cpu:0\", \"cpu:1\"]}")
            .optional("devices", &MirroredOptions::devices, "the devices, or auto", at_most(kMostReplicas))
            .optional("replicas", &MirroredOptions::replicas,
                      "how many replicas are laid over the devices in turn; one a device where not given",
                      between<std::optional<int64_t>>(1, kMostReplicas))
            .optional("bucket_megabytes", &MirroredOptions::bucket_megabytes,
                      "how much of the gradient GPUs sum at a time while backward goes on",
                      between(0.001, 65536.0)));
    return t;
  }();
  return table;
}

}  // namespace dtrain
