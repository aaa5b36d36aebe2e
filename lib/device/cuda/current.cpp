#include "device/cuda/current.h"

#include <cuda_runtime.h>

#include "device/cuda/check.h"
#include "device/cuda/chosen_device.h"

namespace dtrain::cuda {

void use_device(int index) {
  check(cudaSetDevice(index), "selecting a GPU", index);
  chosen_device = index;
}

OnDevice::OnDevice(int index) : before_(chosen_device) {
  use_device(index);
}

OnDevice::~OnDevice() {
  if (before_ < 0 || before_ == chosen_device) return;
  chosen_device = before_;
  cudaSetDevice(before_);
}

}  // namespace dtrain::cuda
