#include "device/cuda/captured_graph.h"

#include <cstdlib>
#include <string_view>

#include "device/cuda/check.h"

namespace dtrain::cuda {
namespace {

using Graph = Owned<cudaGraph_t, cudaGraphDestroy>;

Graph capture(cudaStream_t stream, const std::function<void()>& work) {
  // Of this thread only: other replicas allocate and wait meanwhile.
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "beginning to capture a step");
  cudaGraph_t captured = nullptr;
  try {
    work();
  } catch (...) {
    // The stream must leave its capture whatever became of it; what failed first is what is reported.
    cudaStreamEndCapture(stream, &captured);
    const Graph dropped(captured);
    cudaGetLastError();
    throw;
  }
  const cudaError_t ended = cudaStreamEndCapture(stream, &captured);
  Graph graph(captured);
  check(ended, "capturing a step");
  return graph;
}

}  // namespace

bool graphs_wanted() {
  const char* said = std::getenv("DTRAIN_CUDA_GRAPHS");
  return !said || std::string_view(said) != "0";
}

CudaCapturedGraph::CudaCapturedGraph(cudaStream_t stream, const std::function<void()>& work)
    : stream_(stream) {
  const Graph captured = capture(stream, work);
  cudaGraphExec_t made = nullptr;
  // Its nodes keep the priorities of the streams that they were captured from.
  check(cudaGraphInstantiate(&made, captured.get(), cudaGraphInstantiateFlagUseNodePriority),
        "making a graph of a captured step");
  graph_.reset(made);
  // Else the first launch would do so, which may allocate and wait.
  check(cudaGraphUpload(graph_.get(), stream_), "bringing a captured step to the GPU");
  check(cudaStreamSynchronize(stream_), "bringing a captured step to the GPU");
}

void CudaCapturedGraph::run() {
  check(cudaGraphLaunch(graph_.get(), stream_), "launching a captured step");
}

}  // namespace dtrain::cuda
