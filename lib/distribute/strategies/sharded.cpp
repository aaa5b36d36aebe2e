#include <optional>
#include <set>
#include <string>

#include <fmt/format.h>

#include "distribute/strategies/common.h"
#include "distribute/strategies/table.h"

namespace dtrain {

namespace {

struct ShardedOptions {
  DeviceList devices;
  std::optional<ReplicaCounts> replicas;
  ShardLevel level = ShardLevel::parameters;
};

/// ZeRO data parallelism. The global batch is divided among the replicas as in `mirrored`, and each replica
/// stores one part of the sharded state. Usually, there is one replica per device.
class Sharded final : public Strategy {
 public:
  explicit Sharded(const ShardedOptions& options) : options_(options) {}

  using Strategy::place;
  Placement place(const Workload& work, Diagnostics& diagnostics) const override {
    reject_layers_devices(work.graph, "sharded", diagnostics);
    if (!check_kinds(diagnostics)) return {};
    Placement placement;
    const std::vector<DeviceId> devices = present_devices(options_.devices, diagnostics);
    for (const DeviceId& device : devices_of_replicas(devices, options_.replicas, work, diagnostics))
      placement.replicas.push_back({device});
    if (const size_t most = devices.size();
        placement.replicas.size() > most && devices[0].kind == DeviceId::Kind::gpu) {
      diagnostics.error(
          options_.replicas->mark,
          fmt::format(
              "sharded: there may be at most one replica per GPU, but there are {} replicas for {} GPU{}",
              placement.replicas.size(), most, most == 1 ? "" : "s"));
      return {};
    }
    placement.sharded = options_.level;
    return placement;
  }

 private:
  /// Reports an error if the devices have different types or if a GPU is listed twice. The reason is that
  /// parts are exchanged either through host memory, or by NCCL with one rank per GPU.
  bool check_kinds(Diagnostics& diagnostics) const {
    const size_t before = diagnostics.count();
    std::set<std::string> gpus;
    for (const auto& [device, mark] : options_.devices.devices) {
      const DeviceId first = options_.devices.devices.front().id;
      if (device.kind != first.kind)
        diagnostics.error(mark, fmt::format("sharded: all devices must be of the same kind, but {} and {} "
                                            "are not; use only CPUs or only GPUs",
                                            first.str(), device.str()));
      else if (device.kind == DeviceId::Kind::gpu && !gpus.insert(device.str()).second)
        diagnostics.error(
            mark,
            fmt::format("sharded: each GPU may be listed only once, but {} is listed twice", device.str()));
    }
    return diagnostics.count() == before;
  }

  ShardedOptions options_;
};

}  // namespace

void add_sharded(Registry<Strategy>& table) {
  table.add<Sharded>(
      "sharded",
      Schema<ShardedOptions>("Sharded data parallelism (ZeRO). Each replica computes a contiguous share of "
                             "each batch, and stores only one part of the arrays that `level` selects.")
          .example("{devices: [\"cpu:0\", \"cpu:1\"], level: parameters}")
          .optional("devices", &ShardedOptions::devices,
                    "the devices to use. `auto` means all GPUs, or the CPU if there are no GPUs",
                    at_most(kMostReplicas))
          .optional(
              "replicas", &ShardedOptions::replicas,
              "number of replicas in each process, or a list with one number for each process. The replicas "
              "are assigned to the devices in turn. By default, there is one replica per device")
          .optional("level", &ShardedOptions::level,
                    "the arrays that are divided among the replicas. `optimizer` divides the optimizer "
                    "state. `gradients` also divides the summed gradients. `parameters` also divides the "
                    "parameters, which are gathered layer by layer when they are used"));
}

}  // namespace dtrain
