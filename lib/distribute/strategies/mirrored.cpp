#include "distribute/strategies/common.h"
#include "distribute/strategies/table.h"

namespace dtrain {

namespace {

struct MirroredOptions {
  DeviceList devices;
  std::optional<ReplicaCounts> replicas;
  double bucket_megabytes = 25;
};

/// Data parallelism. Every replica has the whole model, and the global batch is divided among the replicas.
class Mirrored final : public Strategy {
 public:
  explicit Mirrored(const MirroredOptions& options) : options_(options) {}

  using Strategy::place;
  Placement place(const Workload& work, Diagnostics& diagnostics) const override {
    reject_layers_devices(work.graph, "mirrored", diagnostics);
    const std::vector<DeviceId> devices = present_devices(options_.devices, diagnostics);
    Placement placement;
    for (const DeviceId& device : devices_of_replicas(devices, options_.replicas, work, diagnostics))
      placement.replicas.push_back({device});
    return placement;
  }
  int64_t bucket_bytes() const override {
    return static_cast<int64_t>(options_.bucket_megabytes * (1 << 20));
  }

 private:
  MirroredOptions options_;
};

}  // namespace

void add_mirrored(Registry<Strategy>& table) {
  table.add<Mirrored>(
      "mirrored",
      Schema<MirroredOptions>("Data parallelism. Each replica has a copy of the model and computes a "
                              "contiguous share of each batch. The gradients of all replicas are summed.")
          .example("{devices: [\"cpu:0\", \"cpu:1\"]}")
          .optional("devices", &MirroredOptions::devices,
                    "the devices to use. `auto` means all GPUs, or the CPU if there are no GPUs",
                    at_most(kMostReplicas))
          .optional(
              "replicas", &MirroredOptions::replicas,
              "number of replicas in each process, or a list with one number for each process. The replicas "
              "are assigned to the devices in turn. By default, there is one replica per device")
          .optional("bucket_megabytes", &MirroredOptions::bucket_megabytes,
                    "size of a bucket of gradients in megabytes. GPUs, and the processes of a run "
                    "with several processes, sum the gradients bucket by bucket during the backward pass",
                    between(0.001, 65536.0)));
}

}  // namespace dtrain
