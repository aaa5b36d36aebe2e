#include "device/cuda/current.h"

#include <cuda_runtime.h>

#include "device/cuda/check.h"

namespace dtrain::cuda {
namespace {

// Not asked of the runtime, which would answer 0 for a thread that chose none, and start GPU 0 when that is
// "restored".
thread_local int current_device = -1;

}  // namespace

void use_device(int index) {
  check(cudaSetDevice(index), "choosing a GPU");
  current_device = index;
}

OnDevice::OnDevice(int index) : before_(current_device) {
  use_device(index);
}

OnDevice::~OnDevice() {
  if (before_ < 0 || before_ == current_device) return;
  current_device = before_;
  cudaSetDevice(before_);
}

}  // namespace dtrain::cuda
