// Selects the GPU for the calling thread's CUDA calls.
#pragma once

namespace dtrain::cuda {

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
