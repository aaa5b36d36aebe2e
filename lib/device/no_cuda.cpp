// Stands in for the CUDA folder where there is no CUDA toolkit.
#include <fmt/format.h>

#include "base/error.h"
#include "device/device.h"
#include "device/gpu_info.h"
#include "device/peer_access.h"

namespace dtrain {

GpuPresence gpu_presence() {
  return {0, "built without CUDA"};
}

std::string cuda_build_version() {
  return "";
}

std::unique_ptr<Context> make_gpu_context(DeviceId device, bool) {
  throw UserError(fmt::format("{}: no GPU ({})", device.str(), gpu_presence().reason));
}

GpuReport gpu_report() {
  GpuReport report;
  report.presence = gpu_presence();
  return report;
}

void enable_peer_access(const Context&, const Context&) {}

std::vector<GpuSpeed> measure_gpus() {
  return {};
}

}  // namespace dtrain
