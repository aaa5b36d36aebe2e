#include "distribute/strategies/common.h"
#include "distribute/strategies/table.h"

namespace dtrain {

namespace {

struct SingleOptions {
  DeviceList device;
};

/// Puts the whole model on one device. Other strategies are tested against its results.
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
  at_most_one.expected = "one device, or auto (use mirrored for several)";
  table.add<Single>(
      "single", Schema<SingleOptions>("Computes the model on one device.")
                    .example("{device: \"gpu:0\"}")
                    .optional("device", &SingleOptions::device,
                              "the device; auto: the first GPU, or the CPU if there is no GPU", at_most_one));
}

}  // namespace dtrain
