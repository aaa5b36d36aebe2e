#include "device/cuda/replay.h"

#include <cstdlib>
#include <string_view>

#include "device/cuda/check.h"

namespace dtrain::cuda {
namespace {

using Graph = Owned<cudaGraph_t, cudaGraphDestroy>;

bool graphs_wanted() {
  const char* said = std::getenv("DTRAIN_CUDA_GRAPHS");
  return !said || std::string_view(said) != "0";
}

}  // namespace

CudaReplay::CudaReplay(cudaStream_t stream) : stream_(stream), capturing_(graphs_wanted()) {}

void CudaReplay::run(const std::function<void()>& work) {
  if (!warm_ || !capturing_) {
    work();
    warm_ = true;
    return;
  }
  if (!graph_) capture(work);
  check(cudaGraphLaunch(graph_.get(), stream_), "launching a captured step");
}

void CudaReplay::capture(const std::function<void()>& work) {
  // Of this thread only: other replicas allocate and wait meanwhile.
  check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "beginning to capture a step");
  cudaGraph_t captured = nullptr;
  try {
    work();
  } catch (...) {
    // The stream must leave its capture whatever became of it; what failed first is what is reported.
    cudaStreamEndCapture(stream_, &captured);
    const Graph dropped(captured);
    cudaGetLastError();
    throw;
  }
  const cudaError_t ended = cudaStreamEndCapture(stream_, &captured);
  const Graph graph(captured);
  check(ended, "capturing a step");
  cudaGraphExec_t made = nullptr;
  check(cudaGraphInstantiate(&made, graph.get(), 0), "making a graph of a captured step");
  graph_.reset(made);
}

}  // namespace dtrain::cuda
