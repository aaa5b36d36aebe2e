// Emulates the CUDA runtime's streams, events and captures.
#include <algorithm>
#include <chrono>
#include <memory>
#include <set>
#include <utility>

#include "emulation/memory.h"
#include "emulation/runtime_handles.h"

namespace dtrain::emulation {

namespace {

Handles<CUstream_st> streams;
Handles<CUevent_st> events;
std::vector<std::unique_ptr<CUstream_st>> legacy_streams;
std::vector<std::shared_ptr<Capture>> captures;  // active captures
constexpr int kGreatestPriority = -5;
int refusing_device = -1;  // device that rejects captures; -1: none
size_t captured_calls = 0;
thread_local int chosen_device = 0;
thread_local std::vector<std::weak_ptr<Capture>> own_captures;  // captures begun by this thread

CUstream_st* legacy_stream(int device) {
  while (legacy_streams.size() <= static_cast<size_t>(device)) {
    legacy_streams.push_back(std::make_unique<CUstream_st>());
    legacy_streams.back()->device = static_cast<int>(legacy_streams.size()) - 1;
    legacy_streams.back()->legacy = true;
  }
  return legacy_streams[static_cast<size_t>(device)].get();
}

bool implicitly_waits_for_capture(const CUstream_st* stream) {
  return stream->legacy && std::any_of(captures.begin(), captures.end(), [&](const auto& capture) {
           return capture->origin->blocking && capture->origin->device == stream->device;
         });
}

/// Returns an error if a thread may not wait for this stream: because the stream is captured, or because
/// another capture forbids the wait.
cudaError_t may_wait(CUstream_st* stream) {
  if (stream->capture) return spoil(stream->capture, cudaErrorStreamCaptureUnsupported);
  if (implicitly_waits_for_capture(stream)) return cudaErrorStreamCaptureImplicit;
  return forbid_capture();
}

void unite(std::vector<size_t>& into, const std::vector<size_t>& from) {
  for (const size_t node : from) {
    if (std::find(into.begin(), into.end(), node) == into.end()) into.push_back(node);
  }
}

/// Returns these nodes and all their ancestors.
std::set<size_t> ancestors(const Capture& capture, const std::vector<size_t>& nodes) {
  std::set<size_t> found(nodes.begin(), nodes.end());
  for (size_t i = capture.nodes.size(); i-- > 0;) {
    if (found.contains(i)) found.insert(capture.nodes[i].after.begin(), capture.nodes[i].after.end());
  }
  return found;
}

}  // namespace

CUstream_st* stream_of(cudaStream_t handle) {
  if (handle == nullptr || handle == cudaStreamLegacy) return legacy_stream(chosen_device);
  return exists(streams, handle) ? handle : nullptr;
}

std::vector<WorkPtr> tails(CUstream_st* stream) {
  std::vector<WorkPtr> after = {stream->tail};
  if (stream->legacy) {
    for (const auto& other : streams) {
      if (other->blocking && other->device == stream->device) after.push_back(other->tail);
    }
  } else if (stream->blocking) {
    after.push_back(legacy_stream(stream->device)->tail);
  }
  return after;
}

cudaError_t spoil(const std::shared_ptr<Capture>& capture, cudaError_t status) {
  capture->broken = true;
  return status;
}

int current_device() {
  return chosen_device;
}

cudaError_t forbid_capture() {
  cudaError_t status = cudaSuccess;
  for (const auto& capture : captures) {
    const bool own = std::any_of(own_captures.begin(), own_captures.end(),
                                 [&](const auto& one) { return one.lock() == capture; });
    if (capture->mode == cudaStreamCaptureModeRelaxed) continue;
    if (!own && capture->mode == cudaStreamCaptureModeThreadLocal) continue;
    status = spoil(capture, cudaErrorStreamCaptureUnsupported);
  }
  return status;
}

bool is_captured(cudaStream_t stream) {
  return stream && stream != cudaStreamLegacy && stream->capture;
}

void reject_capture(int device, size_t after) {
  const auto lock = lock_machine();
  refusing_device = device;
  captured_calls = after;
}

cudaError_t enqueue(cudaStream_t handle, std::function<void()> run, std::function<bool()> ready,
                    std::function<void()> queued) {
  CUstream_st* stream = stream_of(handle);
  if (!stream) return cudaErrorInvalidResourceHandle;
  if (const cudaError_t status = device_status(stream->device); status != cudaSuccess) return status;
  if (stream->capture && stream->device == refusing_device && stream->capture->nodes.size() >= captured_calls)
    return spoil(stream->capture, cudaErrorStreamCaptureUnsupported);
  if (stream->capture) {
    Capture& capture = *stream->capture;
    if (capture.broken) return cudaErrorStreamCaptureInvalidated;
    capture.nodes.push_back(
        {stream->priority, std::move(run), std::move(ready), std::move(queued), stream->capture_tail});
    stream->capture_tail = {capture.nodes.size() - 1};
    return cudaSuccess;
  }
  if (implicitly_waits_for_capture(stream)) return cudaErrorStreamCaptureImplicit;
  if (run) ++counts().calls;
  stream->tail = queue_work(stream->device, std::move(run), tails(stream), std::move(ready), queued);
  run_some();
  return cudaSuccess;
}

std::string stop_handles() {
  std::string left = stop_all(streams, "streams") + stop_all(events, "events") + stop_graphs();
  left += stop_all(captures, "captures");
  legacy_streams.clear();
  return left;
}

}  // namespace dtrain::emulation

using namespace dtrain::emulation;

extern "C" {

cudaError_t cudaGetDevice(int* device) {
  *device = chosen_device;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  const auto lock = lock_machine();
  if (machine().devices == 0) return answer(cudaErrorNoDevice);
  if (device < 0 || device >= machine().devices) return answer(cudaErrorInvalidDevice);
  if (const cudaError_t status = make_context(device); status != cudaSuccess) return answer(status);
  chosen_device = device;
  return cudaSuccess;  // a broken device can still be selected
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* made, unsigned flags) {
  const auto lock = lock_machine();
  if (machine().devices == 0) return answer(cudaErrorNoDevice);
  if (device_status() != cudaSuccess) return answer(device_status());
  auto stream = std::make_unique<CUstream_st>();
  stream->device = chosen_device;
  stream->blocking = (flags & cudaStreamNonBlocking) == 0;
  *made = streams.insert(std::move(stream)).first->get();
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* made, unsigned flags, int priority) {
  const cudaError_t status = cudaStreamCreateWithFlags(made, flags);
  const auto lock = lock_machine();
  if (status == cudaSuccess) (*made)->priority = std::clamp(priority, kGreatestPriority, 0);
  return status;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = kGreatestPriority;
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const auto lock = lock_machine();
  const auto found = find(streams, stream);
  if (found == streams.end()) return answer(cudaErrorInvalidResourceHandle);
  if (stream->capture) stream->capture->broken = true;
  streams.erase(found);  // its work continues
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  auto lock = lock_machine();
  CUstream_st* stream = stream_of(handle);
  if (!stream) return answer(cudaErrorInvalidResourceHandle);
  if (const cudaError_t status = may_wait(stream); status != cudaSuccess) return answer(status);
  for (const WorkPtr& work : tails(stream)) {
    // A thread that waits for a blocking stream waits only for the work of this stream. It waits for the null
    // stream only if this work does.
    if (!stream->legacy && work != stream->tail) continue;
    const cudaError_t status = run_until_done(work, stream->device, lock);
    if (status != cudaSuccess) return answer(status);
  }
  return answer(device_status(stream->device));
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  auto lock = lock_machine();
  CUstream_st* stream = stream_of(handle);
  if (!stream) return answer(cudaErrorInvalidResourceHandle);
  if (const cudaError_t status = may_wait(stream); status != cudaSuccess) return answer(status);
  run_some();
  if (const cudaError_t status = device_status(stream->device); status != cudaSuccess) return answer(status);
  return !stream->tail || stream->tail->done ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaDeviceSynchronize() {
  auto lock = lock_machine();
  if (const cudaError_t status = forbid_capture(); status != cudaSuccess) return answer(status);
  std::vector<WorkPtr> all = {legacy_stream(chosen_device)->tail};
  for (const auto& stream : streams) {
    if (stream->device == chosen_device) all.push_back(stream->tail);
  }
  for (const WorkPtr& work : all) {
    const cudaError_t status = run_until_done(work, chosen_device, lock);
    if (status != cudaSuccess) return answer(status);
  }
  return answer(device_status());
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* made, unsigned flags) {
  const auto lock = lock_machine();
  if (machine().devices == 0) return answer(cudaErrorNoDevice);
  if (device_status() != cudaSuccess) return answer(device_status());
  auto event = std::make_unique<CUevent_st>();
  event->device = chosen_device;
  event->timing = (flags & cudaEventDisableTiming) == 0;
  *made = events.insert(std::move(event)).first->get();
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* made) {
  return cudaEventCreateWithFlags(made, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const auto lock = lock_machine();
  const auto found = find(events, event);
  if (found == events.end()) return answer(cudaErrorInvalidResourceHandle);
  events.erase(found);
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t handle) {
  const auto lock = lock_machine();
  CUstream_st* stream = stream_of(handle);
  if (!stream || !exists(events, event)) return answer(cudaErrorInvalidResourceHandle);
  if (event->device != stream->device) return answer(cudaErrorInvalidResourceHandle);
  if (stream->capture) {
    if (stream->capture->broken) return answer(cudaErrorStreamCaptureInvalidated);
    event->capture = stream->capture;
    event->capture_tail = stream->capture_tail;
    return cudaSuccess;
  }
  event->capture = nullptr;
  std::function<void()> record;
  if (event->timing) {
    event->milliseconds = std::make_shared<double>(0);
    record = [time = event->milliseconds] {
      using namespace std::chrono;
      *time = duration<double, std::milli>(steady_clock::now().time_since_epoch()).count();
    };
  }
  const cudaError_t status = enqueue(handle, record);
  event->recorded = stream->tail;
  return answer(status);
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) {
  return cudaEventRecord(event, stream);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  auto lock = lock_machine();
  if (!exists(events, event)) return answer(cudaErrorInvalidResourceHandle);
  if (event->capture) return answer(spoil(event->capture, cudaErrorCapturedEvent));
  if (const cudaError_t status = forbid_capture(); status != cudaSuccess) return answer(status);
  return answer(run_until_done(event->recorded, event->device, lock));
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  const auto lock = lock_machine();
  if (!exists(events, event)) return answer(cudaErrorInvalidResourceHandle);
  if (event->capture) return answer(spoil(event->capture, cudaErrorCapturedEvent));
  if (const cudaError_t status = forbid_capture(); status != cudaSuccess) return answer(status);
  run_some();
  if (const cudaError_t status = device_status(event->device); status != cudaSuccess) return answer(status);
  return !event->recorded || event->recorded->done ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  const auto lock = lock_machine();
  if (!exists(events, start) || !exists(events, end) || !start->timing || !end->timing || !start->recorded ||
      !end->recorded) {
    return answer(cudaErrorInvalidResourceHandle);
  }
  if (!start->recorded->done || !end->recorded->done) return answer(cudaErrorNotReady);
  *milliseconds = static_cast<float>(*end->milliseconds - *start->milliseconds);
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned) {
  const auto lock = lock_machine();
  CUstream_st* stream = stream_of(handle);
  if (!stream || !exists(events, event)) return answer(cudaErrorInvalidResourceHandle);
  if (event->capture && !event->capture->ended) {
    if (stream->capture && stream->capture != event->capture)
      return answer(spoil(stream->capture, cudaErrorStreamCaptureMerge));
    if (stream->legacy) return answer(spoil(event->capture, cudaErrorStreamCaptureImplicit));
    if (!stream->capture) {
      stream->capture = event->capture;
      stream->capture->streams.push_back(stream);
    }
    unite(stream->capture_tail, event->capture_tail);
    return cudaSuccess;
  }
  if (stream->capture) {
    // During a capture, a wait for an event from outside the capture is rejected, even if the event was never
    // recorded or completed long ago.
    return answer(spoil(stream->capture, cudaErrorStreamCaptureIsolation));
  }
  if (event->capture) return answer(cudaErrorCapturedEvent);
  auto after = tails(stream);
  after.push_back(event->recorded);
  stream->tail = queue_work(stream->device, {}, after);
  return answer(device_status(stream->device));
}

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  const auto lock = lock_machine();
  CUstream_st* stream = stream_of(handle);
  if (!stream) return answer(cudaErrorInvalidResourceHandle);
  if (stream->legacy) return answer(cudaErrorStreamCaptureUnsupported);
  if (stream->capture) return answer(cudaErrorIllegalState);
  stream->capture = std::make_shared<Capture>();
  stream->capture->origin = stream;
  stream->capture->mode = mode;
  stream->capture->streams = {stream};
  stream->capture_tail.clear();
  captures.push_back(stream->capture);
  own_captures.push_back(stream->capture);
  return answer(device_status(stream->device));
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  const auto lock = lock_machine();
  *graph = nullptr;
  CUstream_st* stream = stream_of(handle);
  if (!stream || !stream->capture) return answer(cudaErrorIllegalState);
  const std::shared_ptr<Capture> capture = stream->capture;
  if (capture->origin != stream) return answer(spoil(capture, cudaErrorStreamCaptureUnmatched));
  const bool own = std::any_of(own_captures.begin(), own_captures.end(),
                               [&](const auto& one) { return one.lock() == capture; });
  if (!own && capture->mode != cudaStreamCaptureModeRelaxed) return answer(cudaErrorStreamCaptureWrongThread);
  const std::set<size_t> joined = ancestors(*capture, stream->capture_tail);
  bool unjoined = false;
  for (CUstream_st* member : capture->streams) {
    if (!exists(streams, member)) continue;
    for (const size_t node : member->capture_tail) unjoined = unjoined || !joined.contains(node);
    member->capture = nullptr;
    member->capture_tail.clear();
  }
  capture->ended = true;
  std::erase(captures, capture);
  std::erase_if(own_captures, [&](const auto& one) { return one.lock() == capture; });
  if (capture->broken) return answer(cudaErrorStreamCaptureInvalidated);
  if (unjoined) return answer(cudaErrorStreamCaptureUnjoined);
  *graph = keep_graph(std::move(capture->nodes));
  return answer(device_status(stream->device));
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
  const auto lock = lock_machine();
  const CUstream_st* stream = stream_of(handle);
  if (!stream) return answer(cudaErrorInvalidResourceHandle);
  *status = !stream->capture          ? cudaStreamCaptureStatusNone
            : stream->capture->broken ? cudaStreamCaptureStatusInvalidated
                                      : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  static thread_local cudaStreamCaptureMode own = cudaStreamCaptureModeGlobal;
  std::swap(*mode, own);
  return cudaSuccess;
}

}  // extern "C"
