#include "device/cuda/captured_graph.h"

#include <cstdlib>
#include <exception>
#include <string_view>

#include <fmt/format.h>

#include "device/cuda/check.h"

namespace dtrain::cuda {
namespace {

using Graph = Owned<cudaGraph_t, cudaGraphDestroy>;

bool is_capture_error(cudaError_t status) {
  return status >= cudaErrorStreamCaptureUnsupported && status <= cudaErrorStreamCaptureWrongThread;
}

void check_capture(cudaError_t status, const char* what) {
  if (!is_capture_error(status)) return check(status, what);
  cudaGetLastError();
  throw CaptureRejected(fmt::format("{} failed: {}", what, error_text(status)));
}

/// Returns true if a call has invalidated the stream's capture.
bool is_spoiled(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  return cudaStreamIsCapturing(stream, &status) == cudaSuccess &&
         status == cudaStreamCaptureStatusInvalidated;
}

Graph capture(cudaStream_t stream, const std::function<void()>& work) {
  // The capture checks only this thread's calls, because other replicas allocate and wait in the meantime.
  check_capture(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
                "starting the capture of a step");
  cudaGraph_t captured = nullptr;
  try {
    work();
  } catch (const std::exception& error) {
    const bool spoiled = is_spoiled(stream);
    // The stream must always leave capture mode; only the first failure is reported.
    const cudaError_t ended = cudaStreamEndCapture(stream, &captured);
    const Graph dropped(captured);
    cudaGetLastError();
    if (!spoiled) throw;
    throw CaptureRejected(fmt::format("{}; {}", error.what(), error_text(ended)));
  }
  const cudaError_t ended = cudaStreamEndCapture(stream, &captured);
  Graph graph(captured);
  check_capture(ended, "capturing a step");
  return graph;
}

}  // namespace

bool graphs_wanted() {
  const char* value = std::getenv("DTRAIN_CUDA_GRAPHS");
  return !value || std::string_view(value) != "0";
}

CudaCapturedGraph::CudaCapturedGraph(cudaStream_t stream, const std::function<void()>& work)
    : stream_(stream) {
  const Graph captured = capture(stream, work);
  cudaGraphExec_t made = nullptr;
  // Graph nodes keep the priorities of the streams they were captured from.
  check(cudaGraphInstantiate(&made, captured.get(), cudaGraphInstantiateFlagUseNodePriority),
        "instantiating the graph of a captured step");
  graph_.reset(made);
  // Uploads the graph now; otherwise its first launch would do so, which may allocate and wait.
  check(cudaGraphUpload(graph_.get(), stream_), "uploading a captured step to the GPU");
  check(cudaStreamSynchronize(stream_), "uploading a captured step to the GPU");
}

void CudaCapturedGraph::run() {
  check(cudaGraphLaunch(graph_.get(), stream_), "launching a captured step");
}

}  // namespace dtrain::cuda
