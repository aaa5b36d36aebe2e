// Converts the numbers of GPUs to CUDA's numbers, and selects the GPU for the calling thread's CUDA calls.
#pragma once

namespace dtrain::cuda {

/// Return CUDA's number of a GPU of this process, and the inverse. Both numbers are equal unless
/// use_only_gpus() (gpu_info.h) was called.
int ordinal(int index);
int index_of(int ordinal);
/// Returns how many of the `count` GPUs that CUDA lists belong to this process.
int limited_count(int count);

/// Selects the GPU for all further CUDA calls of the calling thread.
void use_device(int index);

/// Selects a GPU for the calling thread as long as the object exists. The destructor selects the previous GPU
/// again, if there was one.
class OnDevice {
 public:
  explicit OnDevice(int index);
  ~OnDevice();
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  int before_;
};

}  // namespace dtrain::cuda
