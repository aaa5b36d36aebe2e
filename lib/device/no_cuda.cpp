// Replacement for the cuda folder in builds without the CUDA toolkit.
#include <fmt/format.h>

#include "base/error.h"
#include "device/device.h"
#include "device/gpu_info.h"
#include "device/peer_access.h"

namespace dtrain {

GpuPresence gpu_presence() {
  return {0, "this program was built without CUDA"};
}

std::string gpu_obstacle(int) {
  return gpu_presence().reason;
}

std::string cuda_build_version() {
  return "";
}

std::unique_ptr<Context> make_gpu_context(DeviceId device, bool, bool) {
  throw UserError(fmt::format("{}: no GPU can be used ({})", device.str(), gpu_presence().reason));
}

std::vector<GpuInfo> list_gpus() {
  return {};
}

std::string gpu_pci_id(int) {
  return "";
}

std::string gpu_uuid(int) {
  return "";
}

void use_only_gpus(int, int) {}

std::map<std::string, int> gpu_indices() {
  return {};
}

GpuReport gpu_report() {
  GpuReport report;
  report.presence = gpu_presence();
  return report;
}

void connect_gpus(const Context&, const Context&) {}

std::vector<std::string> peer_access_notes() {
  return {};
}

std::vector<GpuLibrary> opened_gpu_libraries() {
  return {};
}

std::vector<GpuSpeed> measure_gpus() {
  return {};
}

}  // namespace dtrain
