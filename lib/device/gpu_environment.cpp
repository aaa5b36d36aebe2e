#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "device/device.h"
#include "device/gpu_info.h"
#include "device/nvml.h"
#include "device/peer_access.h"

namespace dtrain {

bool gpu_is_expected(const std::string& root) {
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES"))
    return *visible != '\0' && std::string_view(visible) != "-1";
  std::error_code missing;
  return std::filesystem::exists(root + "/dev/nvidiactl", missing) || Nvml().reason().empty();
}

bool peer_access_is_wanted() {
  const char* value = std::getenv("DTRAIN_P2P");
  return !value || std::string_view(value) != "0";
}

std::vector<std::string> visible_gpus() {
  std::vector<std::string> gpus;
  if (const char* variable = std::getenv("CUDA_VISIBLE_DEVICES")) {
    std::istringstream list(variable);
    // Stops at the first element that is not a GPU, because CUDA ignores this element and all elements after
    // it.
    for (std::string name; std::getline(list, name, ',');) {
      std::erase(name, ' ');
      if (name.empty() || name[0] == '-') break;
      gpus.push_back(name);
    }
    return gpus;
  }
  const Nvml nvml;
  for (unsigned index = 0; index < nvml.count(); ++index) {
    if (nvml.is_split(nvml.gpu(index))) return {};
    gpus.push_back(std::to_string(index));
  }
  return gpus;
}

void show_only_gpus(std::span<const std::string> gpus) {
  std::string list;
  for (const std::string& gpu : gpus) list += (list.empty() ? "" : ",") + gpu;
  setenv("CUDA_VISIBLE_DEVICES", list.c_str(), 1);
}

void set_gpu_environment() {
  setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 0);
  if (!peer_access_is_wanted()) setenv("NCCL_P2P_DISABLE", "1", 0);
}

}  // namespace dtrain
