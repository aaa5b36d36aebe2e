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

/// Properties in which one device differs from the other devices. A status is a CUDA error code, and 0 is
/// success.
struct Oddity {
  int capability = 0;  // 75 means 7.5; 0: the default of the machine
  /// The status that cudaSetDevice and all other calls return if they would create the context of the device.
  int set_device = 0;
  int memory_info = 0;  // status of cudaMemGetInfo
};

/// Peer access between devices.
enum class PeerAccess {
  available,
  absent,
  one_way,     // a device can access only devices with higher indices
  refused,     // cudaDeviceCanAccessPeer reports access, but cudaDeviceEnablePeerAccess fails
  corrupting,  // while peer access is enabled, copies between devices arrive damaged
  hanging,     // while peer access is enabled, copies between devices never complete
};

struct Machine {
  int devices = 2;
  size_t memory_bytes = size_t{1} << 30;  // memory per device
  int multiprocessors = 4;
  int capability = 90;
  int64_t dnn_elements = INT32_MAX;  // maximum tensor size of cuDNN's engines except engine 0
  uint64_t seed = 1;
  bool computes = true;  // if false, work is counted and ordered but not executed
  /// Queued work runs when a thread waits for it. It also runs after a call, with this probability.
  double eagerness = 0.1;
  std::map<int, Oddity> oddities = {};  // deviations from other devices, by device index
  int driver = 0;                       // CUDA version of the driver; 0: the program's version
  int count_status = 0;                 // status of cudaGetDeviceCount
  PeerAccess peers = PeerAccess::available;
  size_t pinned_bytes = ~size_t{0};  // maximum host memory that a call may pin
};

/// Replaces the emulated machine by this machine. Nothing of the old machine may still be in use. Returns the
/// leaks of the old machine ("" if there are none): memory, streams, events and graphs that were not freed.
/// The first machine has DTRAIN_EMULATED_GPUS devices and the seed DTRAIN_EMULATED_SEED if these environment
/// variables are set.
std::string restart(const Machine& machine);

/// Returns the error that the devices have detected since the last call ("" if there is none). The call that
/// caused the error returned cudaErrorLaunchFailure, and so do all later calls until this function is called.
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

/// Makes the next operation on this device fail like a kernel that traps. From then on, all calls on this
/// device return cudaErrorLaunchFailure. Its pending work never completes, so another device that waits for
/// it waits forever. Its graphs are destroyed without releasing their resources. take_failure() does not
/// report this failure.
void break_device(int device);
/// Repairs all devices; pending work of broken devices is dropped.
void repair_devices();

/// Calls of NCCL that create, destroy or abort communicators.
enum class NcclCalls { none, connecting, destroying, aborting };
/// Makes these calls block until this function is called with other calls.
void block_nccl(NcclCalls calls);

/// Makes cuDNN take this many seconds to create an execution plan.
void slow_down_plans(double seconds);

/// Makes graph launches on this device block until an NCCL communicator is aborted, like a driver that waits
/// for another device; -1: no device.
void block_graph_launches(int device);

/// Makes graph captures on this device fail at the call after the first `after` calls, as under a profiler or
/// compute-sanitizer that does not support capturing this call; -1: no device.
void reject_capture(int device, size_t after = 0);

/// Sets the version that ncclGetVersion returns (22105 is 2.21.5); 0: the header's version.
void set_nccl_version(int version);

/// Makes the NCCL calls on this device never complete, as if the link was lost. ncclCommGetAsyncError then
/// reports an error; -1: no device.
void lose_nccl_link(int device);

/// Unloads all kernels. The next launch of each kernel loads it again, and loading may wait for all devices.
void unload_kernels();

/// Returns the devices with a context of this process.
std::set<int> contexts();
/// Returns the devices on which waiting threads sleep instead of busy-waiting
/// (cudaDeviceScheduleBlockingSync).
std::set<int> sleepers();

/// Returns the allocated device memory of all devices, in bytes.
size_t bytes_in_use();

}  // namespace dtrain::emulation
