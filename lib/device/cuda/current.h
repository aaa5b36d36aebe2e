// Which GPU the calling thread's CUDA calls go to.
#pragma once

namespace dtrain::cuda {

/// The calling thread's CUDA calls go to this GPU from now on.
void use_device(int index);

/// They go to this GPU for its lifetime, and afterwards to that of the last `use_device`.
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
