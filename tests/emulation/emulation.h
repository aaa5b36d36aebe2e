// An emulation of the CUDA libraries that runs dtrain's CUDA backend on the CPU, from the same sources as a
// GPU build: the host compiler compiles the .cu files (device_language.h, ops/cuda/launch.h), and the files
// in this folder replace the CUDA runtime, cuBLASLt, cuDNN and NCCL.
//
// It tests that kernels compute correct results and their threads synchronize where they must; that streams
// and events order all work that needs an order (queued work runs late and in random order); that captured
// work can be captured and gives the same results when replayed; that nothing leaks or is used after it was
// freed; that the host never touches device memory; and that the libraries are called as documented, as far
// as these files check it.
//
// It does not test a GPU's memory model (threads run one at a time, up to where they wait), bit-exact
// arithmetic, speed, limits of registers and shared memory (or __launch_bounds__), or undocumented behavior
// and algorithm choices of the libraries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>

namespace dtrain::emulation {

/// The deviations of one device from the others. Statuses are CUDA error codes; 0 is success.
struct Oddity {
  int capability = 0;  // 75 is 7.5; 0: the default of the machine
  /// Status of cudaSetDevice and of every other call that would create the device's context.
  int set_device = 0;
  int memory_info = 0;  // status of cudaMemGetInfo
};

/// Peer access between devices.
enum class PeerAccess {
  available,
  absent,
  one_way,     // a device can access only devices with higher indices
  refused,     // cudaDeviceCanAccessPeer reports access, but cudaDeviceEnablePeerAccess fails
  corrupting,  // copies between devices arrive damaged while peer access is enabled
};

struct Machine {
  int devices = 2;
  size_t memory_bytes = size_t{1} << 30;  // memory per device
  int multiprocessors = 4;
  int capability = 90;
  int64_t dnn_elements = INT32_MAX;  // maximum tensor size of cuDNN's engines except engine 0
  uint64_t seed = 1;
  bool computes = true;  // if false, work is counted and ordered but not executed
  /// Work runs when a thread waits for it and, with this probability, after each call.
  double eagerness = 0.1;
  std::map<int, Oddity> oddities = {};  // deviations from other devices, by device index
  int driver = 0;                       // CUDA version of the driver; 0: the program's version
  int count_status = 0;                 // status of cudaGetDeviceCount
  PeerAccess peers = PeerAccess::available;
  size_t pinned_bytes = ~size_t{0};  // maximum host memory that a call may pin
};

/// Restarts with this machine; nothing of the old one may still be in use. Returns the leaks of the old
/// machine: memory, streams, events and graphs that were not freed ("" if none). The initial machine has
/// DTRAIN_EMULATED_GPUS devices and the seed DTRAIN_EMULATED_SEED, if set in the environment.
std::string restart(const Machine& machine);

/// Returns the failure of the devices since the last call ("" if none). The calls that failed returned
/// cudaErrorLaunchFailure, and so do all later calls until this function is called.
std::string take_failure();

/// Statistics of the work enqueued on devices.
struct Counts {
  int64_t calls = 0;        // kernels, copies and memsets enqueued outside graphs
  int64_t launches = 0;     // graph launches
  int64_t nodes = 0;        // nodes in the launched graphs
  int64_t urgent = 0;       // nodes with a higher priority
  int64_t threads = 0;      // kernel threads, counted at launch or capture
  int64_t allocations = 0;  // device memory allocations
};
/// Returns the counts since the last call.
Counts take_counts();

/// Makes the next operation on this device fail like a kernel that traps. From then on the device's calls
/// return cudaErrorLaunchFailure, its pending work never completes (so waiting for it on another device never
/// ends), and its graphs are destroyed without releasing their resources. take_failure() does not report this
/// failure.
void break_device(int device);
/// Repairs all devices; pending work of broken devices is dropped.
void repair_devices();

/// Makes NCCL's group calls that abort communicators block forever, or return again.
void block_nccl_aborts(bool blocked);

/// Makes cuDNN take this many seconds to create an execution plan.
void slow_down_plans(double seconds);

/// Makes graph launches on this device block until an NCCL communicator is aborted, like a driver that waits
/// for another device; -1: none.
void block_graph_launches(int device);

/// Makes graph captures on this device fail at the call after the first `after` calls, as under a profiler or
/// compute-sanitizer that does not support capturing this call; -1: no device.
void reject_capture(int device, size_t after = 0);

/// Sets the version that ncclGetVersion returns (22105 is 2.21.5); 0: the header's version.
void set_nccl_version(int version);

/// Makes NCCL's calls on this device never complete, and ncclCommGetAsyncError report an error, as if the
/// link was lost; -1: none.
void lose_nccl_link(int device);

/// Makes the next launch of every kernel a first launch again, which may wait for all devices.
void unload_kernels();

/// Returns the devices with a context of this process.
std::set<int> contexts();
/// Returns the devices whose waiting threads sleep (cudaDeviceScheduleBlockingSync).
std::set<int> sleepers();

/// Returns the allocated device memory of all devices, in bytes.
size_t bytes_in_use();

}  // namespace dtrain::emulation
