// Work captured into a CUDA graph.
#pragma once

#include <cuda_runtime.h>

#include "device/cuda/handle.h"
#include "device/device.h"

namespace dtrain::cuda {

/// Returns false if the environment has DTRAIN_CUDA_GRAPHS=0.
bool graphs_wanted();

class CudaCapturedGraph final : public CapturedGraph {
 public:
  CudaCapturedGraph(cudaStream_t stream, const std::function<void()>& work);
  void run() override;

 private:
  cudaStream_t stream_;
  Owned<cudaGraphExec_t, cudaGraphExecDestroy> graph_;
};

}  // namespace dtrain::cuda
