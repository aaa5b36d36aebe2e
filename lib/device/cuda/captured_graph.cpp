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

/// Returns true if an earlier call has invalidated the capture of this stream.
bool is_spoiled(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  return cudaStreamIsCapturing(stream, &status) == cudaSuccess &&
         status == cudaStreamCaptureStatusInvalidated;
}

Graph capture(cudaStream_t stream, const std::function<void()>& work) {
  // Only unsafe calls of this thread invalidate the capture (thread-local mode). Other replicas may allocate
  // memory and wait during the capture.
  check_capture(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
                "starting the capture of a step");
  cudaGraph_t captured = nullptr;
  try {
    work();
  } catch (const std::exception& error) {
    const bool spoiled = is_spoiled(stream);
    // The capture must always be ended, even after an error. If several calls fail, only the first failure is
    // reported.
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
  // The flag gives each graph node the priority of the stream from which it was captured.
  check(cudaGraphInstantiate(&made, captured.get(), cudaGraphInstantiateFlagUseNodePriority),
        "instantiating the graph of a captured step");
  graph_.reset(made);
  // Uploads the graph now. Without this call, the first launch would upload it, which may allocate memory and
  // wait for the device.
  check(cudaGraphUpload(graph_.get(), stream_), "uploading a captured step to the GPU");
  check(cudaStreamSynchronize(stream_), "uploading a captured step to the GPU");
}

void CudaCapturedGraph::run() {
  check(cudaGraphLaunch(graph_.get(), stream_), "launching a captured step");
}

}  // namespace dtrain::cuda
