#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

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

void set_gpu_environment() {
  setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 0);
  if (!peer_access_is_wanted()) setenv("NCCL_P2P_DISABLE", "1", 0);
}

}  // namespace dtrain
