#include "distribute/strategies/common.h"
#include "distribute/strategies/table.h"

namespace dtrain {

namespace {

struct SingleOptions {
  DeviceList device;
};

/// The whole model on a single device. Its results are the reference in tests of other strategies.
class Single final : public Strategy {
 public:
  explicit Single(const SingleOptions& options) : options_(options) {}

  using Strategy::place;
  Placement place(const Workload& work, Diagnostics& diagnostics) const override {
    reject_layers_devices(work.graph, "single", diagnostics);
    const std::vector<DeviceId> devices = present_devices(options_.device, diagnostics);
    Placement placement;
    if (!devices.empty()) placement.replicas = {{devices[0]}};
    return placement;
  }

 private:
  SingleOptions options_;
};

}  // namespace

void add_single(Registry<Strategy>& table) {
  Check<DeviceList> at_most_one = at_most(1);
  at_most_one.expected = "one device, or auto (for several devices, use the strategy mirrored)";
  table.add<Single>(
      "single", Schema<SingleOptions>("Computes the whole model on one device.")
                    .example("{device: \"gpu:0\"}")
                    .optional("device", &SingleOptions::device,
                              "the device to use. `auto` means the first GPU, or the CPU if there is no GPU",
                              at_most_one));
}

}  // namespace dtrain
