// Replacement for nccl.cpp in builds without NCCL.
#include "collective/collective.h"

namespace dtrain {

std::vector<std::unique_ptr<DeviceCollective>> make_nccl_group(std::span<Context* const>, World&) {
  throw Error("training on several GPUs needs NCCL, but this program was built without it");
}

bool nccl_available() {
  return false;
}

std::string nccl_version() {
  return "";
}

void set_nccl_environment(bool) {}

}  // namespace dtrain
