#include "device/cuda/current.h"

#include <algorithm>
#include <cuda_runtime.h>
#include <limits>

#include "device/cuda/check.h"
#include "device/cuda/chosen_device.h"
#include "device/gpu_info.h"

namespace dtrain {
namespace cuda {

namespace {

// Not atomic, because use_only_gpus() is called before other threads make CUDA calls.
int first_ordinal = 0;
int most_gpus = std::numeric_limits<int>::max();

}  // namespace

int ordinal(int index) {
  return first_ordinal + index;
}

int index_of(int ordinal) {
  return ordinal - first_ordinal;
}

int limited_count(int count) {
  return std::clamp(count - first_ordinal, 0, most_gpus);
}

void use_device(int index) {
  check(cudaSetDevice(ordinal(index)), "selecting a GPU", index);
  chosen_device = index;
}

void select_if_none(int index) {
  if (chosen_device < 0) use_device(index);
}

OnDevice::OnDevice(int index) : before_(chosen_device) {
  use_device(index);
}

OnDevice::~OnDevice() {
  if (before_ < 0 || before_ == chosen_device) return;
  chosen_device = before_;
  cudaSetDevice(ordinal(before_));
}

}  // namespace cuda

void use_only_gpus(int first, int count) {
  cuda::first_ordinal = first;
  cuda::most_gpus = count;
}

}  // namespace dtrain
