// Which GPU the calling thread's CUDA calls go to.
#pragma once

namespace dtrain::cuda {

/// From now on this one.
void use_device(int index);

/// This one for a while; afterwards that of the last `use_device`.
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
