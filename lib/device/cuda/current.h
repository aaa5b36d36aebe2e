// Selects the GPU for the calling thread's CUDA calls.
#pragma once

namespace dtrain::cuda {

/// Directs all further CUDA calls of the calling thread to this GPU.
void use_device(int index);

/// Directs the calling thread's CUDA calls to a GPU for the lifetime of the object, then back to the
/// previously selected GPU, if any.
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
