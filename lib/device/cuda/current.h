// Converts dtrain's GPU indices to CUDA device ordinals, and selects the GPU for the calling thread's CUDA
// calls.
#pragma once

namespace dtrain::cuda {

/// Returns the CUDA device ordinal of a GPU of this process. It differs from dtrain's index only after
/// use_only_gpus() (gpu_info.h).
int ordinal(int index);
/// Returns dtrain's index of the GPU with this CUDA device ordinal.
int index_of(int ordinal);
/// Returns how many of the `count` GPUs that CUDA lists belong to this process.
int limited_count(int count);

/// Selects the GPU for all further CUDA calls of the calling thread.
void use_device(int index);
/// Selects this GPU if the calling thread has not selected a GPU yet. Without a selected GPU, most CUDA calls
/// create a context on the first GPU that CUDA lists. After use_only_gpus(), this GPU may belong to another
/// process, whose memory the context would take.
void select_if_none(int index);

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
