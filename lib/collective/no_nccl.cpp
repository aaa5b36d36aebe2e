// Replacement for nccl.cpp in builds without NCCL.
#include "collective/collective.h"

namespace dtrain {

std::vector<std::unique_ptr<DeviceCollective>> make_nccl_group(std::span<Context* const>, World&) {
  throw Error("several GPUs need NCCL, which this program was built without");
}

bool nccl_available() {
  return false;
}

std::string nccl_version() {
  return "";
}

void set_nccl_environment(bool) {}

}  // namespace dtrain
