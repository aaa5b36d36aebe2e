// A part of the emulated GPUs.
#pragma once

#include <limits>

#include "device/gpu_info.h"

namespace dtrain::emulation {

/// Restricts this process to a part of the GPUs (use_only_gpus()) for the lifetime of the object.
class OnlyGpus {
 public:
  OnlyGpus(int first, int count) { use_only_gpus(first, count); }
  ~OnlyGpus() { use_only_gpus(0, std::numeric_limits<int>::max()); }
  OnlyGpus(const OnlyGpus&) = delete;
  OnlyGpus& operator=(const OnlyGpus&) = delete;
};

}  // namespace dtrain::emulation
