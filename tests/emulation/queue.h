// What has been asked of the devices and is not done yet, and what becomes of it.
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

/// A piece of work that begins once all that it comes after is done, and `ready` (where there is one) holds.
struct Work {
  int device = 0;
  std::function<void()> run;
  std::function<bool()> ready;
  int awaited = 0;
  bool done = false;
  std::vector<std::shared_ptr<Work>> next;
};
using WorkPtr = std::shared_ptr<Work>;

/// A piece of work of a captured graph, which comes after nodes before it only.
struct CapturedNode {
  int priority = 0;  // less is more urgent
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

/// Everything of the emulated machine that threads share is behind this lock, device work included.
std::unique_lock<std::mutex> lock_machine();
const Machine& machine();
/// For decisions that must not matter.
uint64_t random_number();

/// `queued` is called at once.
WorkPtr queue_work(int device, std::function<void()> run, const std::vector<WorkPtr>& after,
                   std::function<bool()> ready = {}, const std::function<void()>& queued = {});
/// Runs ready work in random order until `work` is done (null: is done already). Waits, without the lock,
/// while nothing is ready but other threads may bring more. Gives the device's status.
cudaError_t run_until_done(const WorkPtr& work, int device, std::unique_lock<std::mutex>& lock);
/// Now and then some of what is ready.
void run_some();
/// All that is ready.
void run_all();
/// Somebody waiting may go on.
void notify_change();

int current_device();

/// Makes it the failure of all devices, as the caller broke a rule: every later call reports it.
void fail_device(const std::string& what);
/// cudaErrorLaunchFailure where all devices have failed, or this one is broken (break_device).
cudaError_t device_status(int device = current_device());
bool any_broken();

/// Remembers what cudaGetLastError tells, and passes it on.
cudaError_t answer(cudaError_t status);

/// Work in the order of a stream; part of its capture where it is captured. `queued` is called when it joins
/// the device's queue: now, or whenever what was captured is launched.
cudaError_t enqueue(cudaStream_t stream, std::function<void()> run, std::function<bool()> ready = {},
                    std::function<void()> queued = {});
bool is_captured(cudaStream_t stream);
/// For calls that must not be made while this thread's work is captured: says so, and spoils the capture.
cudaError_t forbid_capture();
/// For calls that may wait for the work of all devices, as allocating does: fails the device where that work
/// may wait for NCCL calls that some member of this device's communicators has not queued yet. `call`: what
/// the failure says of it.
void wait_for_all_devices(const char* call = "a call that may wait for all devices");
/// Communicators of NCCL that have been aborted so far.
int64_t nccl_aborts();
Counts& counts();

// runtime_devices.cpp, under the lock.

/// The device's; one without any where the machine names none.
const Oddity& oddity_of(int device);
/// What a call answers that needs a context of the device, which it makes.
cudaError_t make_context(int device);
/// Whether the program's kernels run on the device: success, or what starting one answers.
cudaError_t kernel_status(int device);
/// Whether what is copied from one device to another arrives damaged.
bool peer_copy_is_corrupted(int to, int from);
/// Forgets contexts, and which devices may reach each other.
void stop_devices();

}  // namespace dtrain::emulation

// What the runtime's handles point to.
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
  std::shared_ptr<double> milliseconds;  // when it was reached
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
  size_t bytes() const { return nodes.size() << 12; }  // of the device's memory
  dtrain::emulation::WorkPtr last, upload;
  bool launched = false;
};
