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

/// A device name such as "cpu:1" or "gpu:0". Several CPU devices (cpu:0, cpu:1, ...) are logical devices that
/// share the machine's cores.
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

/// A zeroed block of device memory. Blocks are aligned to 64 bytes. Large blocks on a CPU are aligned to 2
/// MiB and use huge pages if available.
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
  /// Returns whether the operations before the event have completed. Does not wait. Returns true if the event
  /// was never recorded, and false after the device has failed. May be called on any thread.
  virtual bool has_completed() const noexcept = 0;
  /// Returns the error of a device that has failed, like Context::failure(). May be called on any thread.
  virtual std::string failure() const { return ""; }
};

/// Thrown by Context::capture() if CUDA cannot capture the operations (cudaError 900 to 908). No operation
/// was enqueued in this case, and the context remains usable.
class CaptureRejected : public Error {
 public:
  using Error::Error;
};

/// Captured operations that can be replayed as a whole. A graph belongs to one context, and only the thread
/// of this context may run it.
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
  /// Makes the calling thread the one that runs this context's operations. Sets the thread to flush denormal
  /// numbers to zero, because some CPUs are a hundred times slower with them. If `pin` was requested, binds
  /// the thread and its workers to their cores. Threads that are started after attach() inherit these cores,
  /// so other threads should be started before attach() or after detach().
  virtual void attach() = 0;
  /// Undoes attach() for the calling thread. The destructor also undoes attach() if it runs on the attached
  /// thread.
  virtual void detach() = 0;
  /// free_bytes() returns the free memory, and workspace_bytes() returns the part of the free memory that the
  /// workspace of the libraries will need (0 on a CPU). Both are in bytes.
  virtual size_t free_bytes() = 0;
  virtual size_t workspace_bytes() const { return 0; }
  Buffer allocate(size_t bytes);
  /// Returns the current and peak bytes allocated by allocate().
  MemoryUse memory_use() const { return counter_->use(); }
  /// Allocates zeroed host memory for asynchronous copies. The memory is pinned if possible. Otherwise it is
  /// pageable: the host then performs the copies, and they cannot be captured. Throws Error if there is not
  /// enough memory.
  virtual Buffer allocate_host(size_t bytes) = 0;
  /// Both functions copy synchronously, after the operations that were enqueued earlier. When the call
  /// returns, `dst` has the data and `src` may be changed.
  virtual void copy_to_device(void* dst, const void* src, size_t bytes) = 0;
  virtual void copy_to_host(void* dst, const void* src, size_t bytes) = 0;
  /// Copies asynchronously, in order with the operations. The memory on the host must come from
  /// allocate_host() and must not change until the copy has completed.
  virtual void enqueue_copy(void* dst, const void* src, size_t bytes) = 0;
  virtual void enqueue_zero(void* dst, size_t bytes) = 0;
  virtual std::unique_ptr<Event> make_event() = 0;
  /// Makes later operations wait for the last recording of `event`. The event may belong to another context.
  virtual void wait(const Event& event) = 0;
  /// Copies to the device asynchronously and concurrently with the operations. The copy starts after the last
  /// recording of `consumed`. After the copy, `uploaded` is recorded, and later operations wait for it. Both
  /// events belong to this context. `src` must come from allocate_host().
  virtual void upload(void* dst, const void* src, size_t bytes, const Event& consumed, Event& uploaded) = 0;
  /// Captures the operations that `work` enqueues, instead of running them. The result can be run without
  /// allocating or waiting. Before the capture, the same calls must have run once, because libraries select
  /// algorithms and allocate memory on first use. Waits for earlier operations. Returns null if `work` must
  /// be called each time instead, because the operations cannot be replayed. This is the case on a CPU, and
  /// with DTRAIN_CUDA_GRAPHS=0 in the environment. Throws CaptureRejected if CUDA cannot capture the
  /// operations.
  virtual std::unique_ptr<CapturedGraph> capture(const std::function<void()>& work) = 0;
  virtual void synchronize() = 0;
  /// Returns the device's name and the error if the device has failed. Returns "" if the device works; a CPU
  /// always works. Does not wait for operations. May be called on any thread.
  virtual std::string failure() { return ""; }

 private:
  virtual Buffer take(size_t bytes) = 0;

  std::shared_ptr<MemoryCounter> counter_ = std::make_shared<MemoryCounter>();  // shared, since buffers may
                                                                                // outlive the context
};

/// Returns a context on a CPU device. `cores` are the cores for its threads, one thread per core. If `pin` is
/// true, each thread is bound to its core.
std::unique_ptr<Context> make_cpu_context(DeviceId device, std::vector<int> cores, bool pin);

/// Creates a context on a GPU. If `deterministic` is true, only algorithms with bitwise reproducible results
/// are used. If `spin` is true, the host busy-waits for the GPU; this is faster if the host thread has its
/// own core. Otherwise the host thread sleeps while it waits. Throws UserError if the GPU does not exist or
/// cannot run this program.
std::unique_ptr<Context> make_gpu_context(DeviceId device, bool deterministic, bool spin = true);

/// Returns the cores on which this process may run. The result does not depend on the current affinity of the
/// thread.
std::vector<int> available_cores();
/// Returns the members of available_cores() on the NUMA node of a PCI device ("0000:41:00.0"), according to
/// /sys/bus/pci/devices. Returns all available cores if the node is unknown or none of its cores is
/// available. `root` is the directory that contains /sys (for tests).
std::vector<int> cores_near(const std::string& pci, const std::string& root = "");

/// Host memory available to this process, in bytes.
struct HostMemory {
  uint64_t total = 0;      // physical memory of the machine
  uint64_t available = 0;  // memory that can be allocated now without swapping
  uint64_t limit = 0;      // maximum memory that this process may use, including swap
  std::string whose;       // source of the limit: "the machine's memory", "the limit in /sys/fs/cgroup/..."
  uint64_t used = 0;       // memory used by this process that counts towards the limit

  /// Returns the number of bytes that the process may still allocate. A 64th of the limit is kept as a
  /// reserve for memory that plans do not include, such as stacks, page tables and buffers of libraries.
  uint64_t left() const;
};
/// Determines the limits of the machine's memory, of the process's control groups (v1 and v2, including all
/// ancestors) and of ulimit. `root` is the directory that contains /proc and /sys (for tests).
HostMemory host_memory(const std::string& root = "");

/// CPU information for `dtrain gpus`.
struct CpuInfo {
  std::string name;  // name of the processor, such as "AMD EPYC 9B45"
  int cores = 1;     // number of cores available to this process
  HostMemory memory;
  std::string instruction_set;  // the best instruction set that is used on this CPU, such as "avx512_vnni"
};
CpuInfo cpu_info();

/// Returns the version of oneDNN at build time, such as "2.6.3". If a different version is used at run time,
/// the result also contains that version.
std::string onednn_version();
/// Returns the CUDA version that this program was built with, such as "13.0"; empty if built without CUDA.
std::string cuda_build_version();

/// The number of GPUs that this process can use. If it is 0, `reason` says why, e.g. "no NVIDIA driver was
/// found".
struct GpuPresence {
  int count = 0;
  std::string reason;
};
GpuPresence gpu_presence();

/// Returns the reason why this program cannot use a GPU that exists, e.g. "its compute capability is 7.5, but
/// ...". Returns "" if no problem is known. Creates no CUDA context.
std::string gpu_obstacle(int index);

/// Returns true if the user probably expects a GPU to be used: the NVIDIA driver is loaded or lists a GPU, or
/// CUDA_VISIBLE_DEVICES names one. False if CUDA_VISIBLE_DEVICES hides all GPUs ("" or "-1"). `root` is the
/// directory that contains /dev (for tests).
bool gpu_is_expected(const std::string& root = "");

/// Returns how many of a GPU's free bytes the plan of a run may use. The rest is reserved for the driver and
/// the libraries, which allocate memory during a run. The reserve has two parts: a 16th of the free memory
/// (at most 192 MiB) for kernels that are loaded on first use, and a 32nd for captured graphs and
/// fragmentation.
size_t usable_gpu_bytes(size_t free);

}  // namespace dtrain
