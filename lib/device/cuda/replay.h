// Work that is captured into a CUDA graph.
#pragma once

#include <cuda_runtime.h>

#include "device/cuda/handle.h"
#include "device/device.h"

namespace dtrain::cuda {

/// Runs the work as it is the first time, so that libraries make what they make lazily; captures it the
/// second time; and from then on only launches what was captured. Where the environment says
/// DTRAIN_CUDA_GRAPHS=0 it runs the work as it is every time.
class CudaReplay final : public Replay {
 public:
  explicit CudaReplay(cudaStream_t stream);
  void run(const std::function<void()>& work) override;

 private:
  void capture(const std::function<void()>& work);

  cudaStream_t stream_;
  bool capturing_;  ///< at all
  bool warm_ = false;
  Owned<cudaGraphExec_t, cudaGraphExecDestroy> graph_;
};

}  // namespace dtrain::cuda
