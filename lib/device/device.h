// Device names and device contexts.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace dtrain {

/// A device name such as "cpu:1" or "gpu:0". cpu:N are logical devices that share the machine's cores.
struct DeviceId {
  enum class Kind { cpu, gpu };
  Kind kind = Kind::cpu;
  int index = 0;

  std::string str() const;
  /// Returns nullopt if the text is not a device name.
  static std::optional<DeviceId> parse(std::string_view text);
  bool operator==(const DeviceId&) const = default;
};

/// Current and peak size of a context's buffers, in bytes.
struct MemoryUse {
  size_t now = 0, most = 0;
};

/// Thread-safe counter of allocated bytes.
class MemoryCounter {
 public:
  void add(size_t bytes);
  void remove(size_t bytes) { now_.fetch_sub(bytes, std::memory_order_relaxed); }
  MemoryUse use() const {
    return {now_.load(std::memory_order_relaxed), most_.load(std::memory_order_relaxed)};
  }

 private:
  std::atomic<size_t> now_{0}, most_{0};
};

/// A zeroed block of device memory, aligned to 64 bytes (large CPU buffers to 2 MiB, in huge pages if
/// available).
class Buffer {
 public:
  Buffer() = default;
  Buffer(void* data, size_t bytes, void (*release)(void*, size_t))
      : data_(data), bytes_(bytes), release_(release) {}
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  void* data() const { return data_; }
  float* f32() const { return static_cast<float*>(data_); }
  size_t bytes() const { return bytes_; }

  /// Counts this buffer in `counter` until it is released.
  void count_in(std::shared_ptr<MemoryCounter> counter);

 private:
  void* data_ = nullptr;
  size_t bytes_ = 0;
  void (*release_)(void*, size_t) = nullptr;
  std::shared_ptr<MemoryCounter> counter_;
};

/// A marker in the sequence of a context's operations.
class Event {
 public:
  virtual ~Event() = default;
  /// Records the event after all operations enqueued so far.
  virtual void record() = 0;
  /// Blocks the host until the operations before the event have completed. Returns at once if the event was
  /// never recorded.
  virtual void synchronize() = 0;
  /// Returns whether the operations before the event have completed, without waiting; true if the event was
  /// never recorded, false after the device has failed. May be called on any thread.
  virtual bool has_completed() const noexcept = 0;
};

/// Thrown by Context::capture() if CUDA cannot capture the work (cudaError 900 to 908). In that case nothing
/// was enqueued, and the context remains usable.
class CaptureRejected : public Error {
 public:
  using Error::Error;
};

/// Captured work that can be replayed as a whole. Belongs to one context; only that context's thread may run
/// it.
class CapturedGraph {
 public:
  virtual ~CapturedGraph() = default;
  virtual void run() = 0;
};

/// One replica's part of a device: some of the CPU's cores, or streams and handles of a GPU. Belongs to the
/// thread that called attach().
class Context {
 public:
  virtual ~Context() = default;
  virtual DeviceId device() const = 0;
  bool on_gpu() const { return device().kind == DeviceId::Kind::gpu; }
  /// Returns the number of threads that run the operations (at least 1).
  virtual int threads() const = 0;
  /// Makes the calling thread run this context's operations: binds it and its workers to their cores if `pin`
  /// was requested, and flushes denormal numbers to zero (they slow down some CPUs a hundredfold). Threads
  /// started after attach() inherit its cores, so start other threads before attach() or after detach().
  virtual void attach() = 0;
  /// Undoes attach() for the calling thread; so does the destructor if the attached thread runs it.
  virtual void detach() = 0;
  /// Return the free memory in bytes, and the part of it that the libraries' workspace will take (0 on the
  /// CPU).
  virtual size_t free_bytes() = 0;
  virtual size_t workspace_bytes() const { return 0; }
  Buffer allocate(size_t bytes);
  /// Returns the current and peak bytes allocated by allocate().
  MemoryUse memory_use() const { return counter_->use(); }
  /// Allocates zeroed host memory for asynchronous copies: pinned if possible, else pageable (the host then
  /// performs the copies, and they cannot be captured). Throws Error if out of memory.
  virtual Buffer allocate_host(size_t bytes) = 0;
  /// Copy synchronously, ordered after earlier operations: on return `src` may change and `dst` holds the
  /// data.
  virtual void copy_to_device(void* dst, const void* src, size_t bytes) = 0;
  virtual void copy_to_host(void* dst, const void* src, size_t bytes) = 0;
  /// Copies asynchronously, ordered with the operations. The host side must come from allocate_host() and
  /// must not change until the copy has completed.
  virtual void enqueue_copy(void* dst, const void* src, size_t bytes) = 0;
  virtual void enqueue_zero(void* dst, size_t bytes) = 0;
  virtual std::unique_ptr<Event> make_event() = 0;
  /// Makes later operations wait for the last recording of `event`, which may belong to another context.
  virtual void wait(const Event& event) = 0;
  /// Copies to the device concurrently with the operations. The copy starts after the last recording of
  /// `consumed`; `uploaded` is recorded after the copy, and later operations wait for it. Both events belong
  /// to this context. `src` must come from allocate_host().
  virtual void upload(void* dst, const void* src, size_t bytes, const Event& consumed, Event& uploaded) = 0;
  /// Captures the operations that `work` enqueues instead of running them. The same calls must have run once
  /// before, because libraries select algorithms and allocate on first use. Waits for earlier operations. The
  /// captured graph runs without allocating or waiting. Returns null if the work cannot be replayed and must
  /// be called each time: on the CPU, or with DTRAIN_CUDA_GRAPHS=0 in the environment. Throws
  /// CaptureRejected.
  virtual std::unique_ptr<CapturedGraph> capture(const std::function<void()>& work) = 0;
  virtual void synchronize() = 0;
  /// Returns the device's name and error if the device has failed; "" if it works (the CPU always does). Does
  /// not wait for operations. May be called on any thread.
  virtual std::string failure() { return ""; }

 private:
  virtual Buffer take(size_t bytes) = 0;

  std::shared_ptr<MemoryCounter> counter_ = std::make_shared<MemoryCounter>();  // shared, since buffers may
                                                                                // outlive the context
};

/// Returns a context on a CPU device. `cores` are the cores for its threads, one thread per core. If `pin` is
/// true, each thread is bound to its core.
std::unique_ptr<Context> make_cpu_context(DeviceId device, std::vector<int> cores, bool pin);

/// Returns a context on a GPU. If `deterministic` is true, only algorithms with bitwise reproducible results
/// are used. If `spin` is true, the host busy-waits for the GPU, which is faster if its thread has a core to
/// itself; otherwise it sleeps. Throws UserError if the GPU does not exist or cannot run this program.
std::unique_ptr<Context> make_gpu_context(DeviceId device, bool deterministic, bool spin = true);

/// Returns the cores that this process may run on, regardless of later thread affinity.
std::vector<int> available_cores();
/// Returns the members of available_cores() on the NUMA node of a PCI device ("0000:41:00.0"), according to
/// /sys/bus/pci/devices. Returns all available cores if the node is unknown or none of its cores is
/// available. `root` is the directory that contains /sys (for tests).
std::vector<int> cores_near(const std::string& pci, const std::string& root = "");

/// Host memory available to this process, in bytes.
struct HostMemory {
  uint64_t total = 0;      // physical memory of the machine
  uint64_t available = 0;  // memory that can be allocated now without swapping
  uint64_t limit = 0;      // maximum that this process may use, including swap
  std::string whose;       // source of the limit: "the machine's memory", "the limit in /sys/fs/cgroup/..."
  uint64_t used = 0;       // memory used by this process, counted against the limit

  /// Returns the bytes that the process may still allocate. Keeps a 64th of the limit in reserve for memory
  /// that plans do not count: stacks, page tables, library buffers.
  uint64_t left() const;
};
/// Determines the limits from the machine, the process's control groups (v1 and v2, including all ancestors)
/// and ulimit. `root` is the directory that contains /proc and /sys (for tests).
HostMemory host_memory(const std::string& root = "");

/// CPU information for `dtrain gpus`.
struct CpuInfo {
  std::string name;  // name of the processor, such as "AMD EPYC 9B45"
  int cores = 1;     // number of cores available to this process
  HostMemory memory;
  std::string instruction_set;  // best one used on this CPU, such as "avx512_vnni"
};
CpuInfo cpu_info();

/// Returns oneDNN's version at build time, such as "2.6.3", plus the version at run time if it differs.
std::string onednn_version();
/// Returns the CUDA version that this program was built with, such as "13.0"; empty if built without CUDA.
std::string cuda_build_version();

/// Number of GPUs that this process can use; if 0, `reason` says why ("no NVIDIA driver was found").
struct GpuPresence {
  int count = 0;
  std::string reason;
};
GpuPresence gpu_presence();

/// Returns the reason why this program cannot use an existing GPU: "its compute capability is 7.5, and ...";
/// empty if no problem is known. Creates no CUDA context.
std::string gpu_obstacle(int index);

/// Returns true if the user probably expects a GPU to be used: the NVIDIA driver is loaded or lists a GPU, or
/// CUDA_VISIBLE_DEVICES names one. False if CUDA_VISIBLE_DEVICES hides all GPUs ("" or "-1"). `root` is the
/// directory that contains /dev (for tests).
bool gpu_is_expected(const std::string& root = "");

/// Returns how many of a GPU's free bytes a run may plan with. The rest is left to the driver and the
/// libraries, which allocate during a run: a 16th (at most 192 MiB) for kernels loaded on first use, and a
/// 32nd for captured graphs and fragmentation.
size_t usable_gpu_bytes(size_t free);

}  // namespace dtrain
