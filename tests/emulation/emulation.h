// A stand-in for CUDA's libraries that lets dtrain's CUDA half run on the CPU, from the very sources that a
// GPU's build compiles: the .cu files by the host's compiler (device_language.h, ops/cuda/launch.h), and in
// place of the CUDA runtime, cuBLASLt, cuDNN and NCCL the files beside this one.
//
// What it proves: that kernels compute what they should, and that their threads meet where they must; that
// streams and events order all work that needs an order, whatever order the rest takes (work is queued, and
// run late and in random order); that captured work is capturable, and means the same when it is replayed;
// that nothing leaks, is used after it was given back, or is touched by the host though it is the device's;
// and that the libraries are called as their documentation asks, as far as the files here check it.
//
// What it does not: a GPU's memory model (threads run one at a time, up to where they wait), its arithmetic
// to the last bit, speed, limits of registers and shared memory (nor __launch_bounds__), and what the
// libraries do beyond their documentation, or choose.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>

namespace dtrain::emulation {

/// How one device differs from the others. Statuses are CUDA's error codes; 0 is success.
struct Oddity {
  int capability = 0;   // 75 is 7.5; 0: the machine's
  int set_device = 0;   // what cudaSetDevice answers, and every other call that would make its context
  int memory_info = 0;  // what cudaMemGetInfo answers
};

/// How devices reach each other's memory.
enum class PeerAccess {
  available,
  absent,
  one_way,     // a device reaches those of a higher number only
  refused,     // cudaDeviceCanAccessPeer promises it, and cudaDeviceEnablePeerAccess fails
  corrupting,  // copies between devices arrive damaged while it is enabled
};

struct Machine {
  int devices = 2;
  size_t memory_bytes = size_t{1} << 30;  // of each device
  int multiprocessors = 4;
  int capability = 90;
  int64_t dnn_elements = INT32_MAX;  // of a tensor that cuDNN's engines take, all but engine 0
  uint64_t seed = 1;
  bool computes = true;  // else work is counted and ordered, and nothing is done
  /// Work is run when somebody waits for it, and besides so often after a call (0 to 1).
  double eagerness = 0.1;
  std::map<int, Oddity> oddities = {};  // by device
  int driver = 0;                       // the CUDA version that the driver is for; 0: the program's
  int count_status = 0;                 // what cudaGetDeviceCount answers, if not success
  PeerAccess peers = PeerAccess::available;
  size_t pinned_bytes = ~size_t{0};  // that a call may pin of the host's memory
};

/// Begins anew, with this machine; nothing of the old one may still be in use. Returns what it left behind:
/// memory, streams, events and graphs that were never given back ("" if none). The first machine has
/// DTRAIN_EMULATED_GPUS devices and the seed DTRAIN_EMULATED_SEED, where the environment says so.
std::string restart(const Machine& machine);

/// What went wrong on the device since this was last asked ("" if nothing). The calls that met it said
/// cudaErrorLaunchFailure. Until it is asked every later call says so, too.
std::string take_failure();

/// What devices have been given.
struct Counts {
  int64_t calls = 0;        // kernels, copies, and memory that is set, by calls of their own
  int64_t launches = 0;     // of graphs
  int64_t nodes = 0;        // of these graphs
  int64_t urgent = 0;       // of these nodes, those of a higher priority
  int64_t threads = 0;      // of kernels, when they are called or captured
  int64_t allocations = 0;  // of device memory
};
/// Since this was last asked.
Counts take_counts();

/// The next operation that begins on this device fails, as a kernel that traps. From then on the device's
/// calls say cudaErrorLaunchFailure, nothing that it was given is ever done, so that waiting for that on
/// another device never ends, and its graphs are destroyed without dropping what they hold. take_failure()
/// does not tell of it.
void break_device(int device);
/// All devices work again; what the broken ones were given is forgotten.
void repair_devices();

/// From now on NCCL's group calls that abort communicators never return, or do so again.
void block_nccl_aborts(bool blocked);

/// From now on cuDNN takes so many seconds to make an execution plan.
void slow_down_plans(double seconds);

/// From now on launches of graphs on this device do not return before an NCCL communicator is aborted, as a
/// driver's that waits for another device; -1: none.
void block_graph_launches(int device);

/// From now on this device captures so many calls and refuses the next, as a tool does that does not know a
/// call; -1: no device does.
void refuse_capture(int device, size_t after = 0);

/// The version that ncclGetVersion tells from now on (22105 is 2.21.5); 0: that of the header.
void set_nccl_version(int version);

/// From now on NCCL's calls of this device never end, and ncclCommGetAsyncError reports an error, as of a
/// link that is lost; -1: none.
void lose_nccl_link(int device);

/// The next launch of every kernel is its first one again, which may wait for all devices.
void unload_kernels();

/// The devices that have a context of this process.
std::set<int> contexts();
/// Those of which threads wait asleep (cudaDeviceScheduleBlockingSync).
std::set<int> sleepers();

/// Device memory that was asked for and is in use, of all devices.
size_t bytes_in_use();

}  // namespace dtrain::emulation
