// The queue of device work and its execution.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <cuda_runtime.h>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "emulation/emulation.h"

namespace dtrain::emulation {

/// A piece of work. It may start when all work that it depends on is done, and when ready() returns true (if
/// `ready` is set).
struct Work {
  int device = 0;
  std::function<void()> run;
  std::function<bool()> ready;
  int awaited = 0;
  bool done = false;
  std::vector<std::shared_ptr<Work>> next;
};
using WorkPtr = std::shared_ptr<Work>;

/// A piece of work in a captured graph. It depends only on earlier nodes of the graph.
struct CapturedNode {
  int priority = 0;  // smaller is more urgent
  std::function<void()> run;
  std::function<bool()> ready;
  std::function<void()> queued;
  std::vector<size_t> after;
};
struct Capture {
  std::vector<CapturedNode> nodes;
  cudaStream_t origin;
  cudaStreamCaptureMode mode;
  bool broken = false;
  bool ended = false;
  std::vector<cudaStream_t> streams;
};

/// Locks the state of the emulated machine that threads share; device work runs under this lock too.
std::unique_lock<std::mutex> lock_machine();
const Machine& machine();
/// Returns a random number for decisions that must not affect results.
uint64_t random_number();

/// Adds work to the queue, and calls `queued` immediately.
WorkPtr queue_work(int device, std::function<void()> run, const std::vector<WorkPtr>& after,
                   std::function<bool()> ready = {}, const std::function<void()>& queued = {});
/// Runs ready work in random order until `work` is done (null means that it is already done). While no work
/// is ready, releases the lock and waits, because other threads may add work. Returns the status of the
/// device.
cudaError_t run_until_done(const WorkPtr& work, int device, std::unique_lock<std::mutex>& lock);
/// Runs one or more pieces of ready work, or none. Machine::eagerness is the probability that another piece
/// runs.
void run_some();
/// Runs all ready work.
void run_all();
/// Wakes up waiting threads.
void notify_change();

int current_device();

/// Marks all devices as failed because the caller has broken a rule of the API. Every later call returns an
/// error.
void fail_device(const std::string& what);
/// Returns cudaErrorLaunchFailure if all devices have failed, or if this device is broken (by
/// break_device()).
cudaError_t device_status(int device = current_device());
bool any_broken();

/// Stores the status, which cudaGetLastError returns later. Returns the status.
cudaError_t answer(cudaError_t status);

/// Adds work to a stream, or to its capture if the stream is being captured. `queued` is called when the work
/// is added to the queue of the device. This is immediately, or whenever the captured graph is launched.
cudaError_t enqueue(cudaStream_t stream, std::function<void()> run, std::function<bool()> ready = {},
                    std::function<void()> queued = {});
bool is_captured(cudaStream_t stream);
/// Must be called by functions that some capture modes forbid (cudaStreamCaptureMode). If a capture forbids
/// the call, invalidates this capture and returns an error. Otherwise returns success.
cudaError_t forbid_capture();
/// Must be called by functions that may wait for the work of all devices, such as allocations. The work may
/// include NCCL calls for which some member of the device's communicators has not queued its part yet. In
/// this case, waiting could be a deadlock, and all devices are marked as failed. `call`: the name of the
/// function in the message.
void wait_for_all_devices(const char* call = "a call that may wait for all devices");
/// Returns the number of NCCL communicators aborted so far.
int64_t nccl_aborts();
Counts& counts();

// The following functions are defined in runtime_devices.cpp. Callers must hold the lock.

/// Returns the device's oddity; a default one if the machine defines none.
const Oddity& oddity_of(int device);
/// Creates the device's context and returns the status.
cudaError_t make_context(int device);
/// Returns success if the device can run the program's kernels, otherwise the status of launching a kernel.
cudaError_t kernel_status(int device);
/// Return whether copies from one device to another arrive damaged, or never complete.
bool peer_copy_is_corrupted(int to, int from);
bool peer_copy_hangs(int to, int from);
/// Resets contexts and peer access.
void stop_devices();

}  // namespace dtrain::emulation

// The objects of the runtime's handles.
struct CUstream_st {
  int device = 0;
  bool blocking = true;
  int priority = 0;
  bool legacy = false;
  dtrain::emulation::WorkPtr tail;
  std::shared_ptr<dtrain::emulation::Capture> capture;
  std::vector<size_t> capture_tail;
};
struct CUevent_st {
  int device = 0;
  bool timing = true;
  dtrain::emulation::WorkPtr recorded;
  std::shared_ptr<double> milliseconds;  // time at which it was reached
  std::shared_ptr<dtrain::emulation::Capture> capture;
  std::vector<size_t> capture_tail;
};
struct CUgraph_st {
  std::vector<dtrain::emulation::CapturedNode> nodes;
};
struct CUgraphExec_st {
  std::vector<dtrain::emulation::CapturedNode> nodes;
  int device = 0;
  bool by_node_priority = false;
  size_t bytes() const { return nodes.size() << 12; }  // device memory of the graph, in bytes
  dtrain::emulation::WorkPtr last, upload;
  bool launched = false;
};
