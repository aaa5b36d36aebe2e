// Devices by name, and one device's working state.
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

/// "cpu:1", "gpu:0". cpu:N are logical devices that share the machine's cores.
struct DeviceId {
  enum class Kind { cpu, gpu };
  Kind kind = Kind::cpu;
  int index = 0;

  std::string str() const;
  /// Nothing where the text is no device's name.
  static std::optional<DeviceId> parse(std::string_view text);
  bool operator==(const DeviceId&) const = default;
};

/// Bytes that a context's buffers have, and the most that they ever had at once.
struct MemoryUse {
  size_t now = 0, most = 0;
};

/// Counts them; on any thread.
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

/// Memory of a device, aligned to 64 bytes (large CPU buffers to 2 MiB, in huge pages where the system gives
/// them). Zeroed.
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

  /// From now on to its release the buffer counts there.
  void count_in(std::shared_ptr<MemoryCounter> counter);

 private:
  void* data_ = nullptr;
  size_t bytes_ = 0;
  void (*release_)(void*, size_t) = nullptr;
  std::shared_ptr<MemoryCounter> counter_;
};

/// A point in the order of a context's operations.
class Event {
 public:
  virtual ~Event() = default;
  /// Records the event after all operations that have been enqueued so far.
  virtual void record() = 0;
  /// The host waits until the operations have come past the event; an event that was never recorded is not
  /// waited for.
  virtual void synchronize() = 0;
};

/// Thrown by Context::capture() where CUDA does not let the work be captured (cudaError 900 to 908). Nothing
/// of it was enqueued, and the context can be used on.
class CaptureRefused : public Error {
 public:
  using Error::Error;
};

/// Captured work, to be enqueued again as a whole. Belongs to one context, whose thread runs it.
class CapturedGraph {
 public:
  virtual ~CapturedGraph() = default;
  virtual void run() = 0;
};

/// One replica's share of one device: of the CPU's cores, or of a GPU its streams and handles. Belongs to
/// one thread, the one that calls `attach`.
class Context {
 public:
  virtual ~Context() = default;
  virtual DeviceId device() const = 0;
  /// Worker threads of the operations run here (at least 1).
  virtual int threads() const = 0;
  /// Makes the calling thread the one that runs this context's operations: binds it (and its workers) to
  /// their cores, where `pin` was asked for, and sets denormal numbers to zero, which cost a hundredfold on
  /// some CPUs. Threads that it starts from then on inherit its cores: start others before, or after detach.
  virtual void attach() = 0;
  /// Undoes that for the calling thread; so does the destructor, where the attached thread runs it.
  virtual void detach() = 0;
  /// Memory that is left, and what of it the libraries' workspace will take (0 on the CPU).
  virtual size_t free_bytes() = 0;
  virtual size_t workspace_bytes() const { return 0; }
  Buffer allocate(size_t bytes);
  /// The bytes that allocate() has given: what is held now, and the most at any time.
  MemoryUse memory_use() const { return counter_->use(); }
  /// Host memory that the device copies from and to by itself; if the system does not pin so much, pageable
  /// memory, which the host copies (and which captured work cannot). Zeroed. Throws Error if there is
  /// neither.
  virtual Buffer allocate_host(size_t bytes) = 0;
  /// When these return, src may change and dst holds what was asked for; in order with the operations.
  virtual void copy_to_device(void* dst, const void* src, size_t bytes) = 0;
  virtual void copy_to_host(void* dst, const void* src, size_t bytes) = 0;
  /// Enqueued in order with the operations; the host side is of allocate_host() and stays as it is until
  /// they are done.
  virtual void enqueue_copy(void* dst, const void* src, size_t bytes) = 0;
  virtual void enqueue_zero(void* dst, size_t bytes) = 0;
  virtual std::unique_ptr<Event> make_event() = 0;
  /// Operations that are enqueued from now on wait until those of the event's context, which may be another
  /// one, have come past the event as it was last recorded.
  virtual void wait(const Event& event) = 0;
  /// A copy to the device beside the operations: it begins once they have come past `consumed` as it was last
  /// recorded, `uploaded` is recorded after it, and operations that are enqueued from now on wait for it.
  /// Both events are of this context. `src` is of allocate_host().
  virtual void upload(void* dst, const void* src, size_t bytes, const Event& consumed, Event& uploaded) = 0;
  /// Captures what `work` enqueues, in place of doing it; its calls must have run before, as libraries choose
  /// and allocate the first time. Waits for the operations; what is captured can then be run without any
  /// allocating or waiting. Null where the work is to be called again every time: on the CPU, and where the
  /// environment says DTRAIN_CUDA_GRAPHS=0. Throws CaptureRefused.
  virtual std::unique_ptr<CapturedGraph> capture(const std::function<void()>& work) = 0;
  virtual void synchronize() = 0;
  /// Why the device has failed, with its name; "" where it works, as the CPU always does. Asks the device
  /// without waiting for its operations. Any thread.
  virtual std::string failure() { return ""; }

 private:
  virtual Buffer take(size_t bytes) = 0;

  std::shared_ptr<MemoryCounter> counter_ = std::make_shared<MemoryCounter>();  // buffers may outlive this
};

/// `cores`: the machine's cores that this context's threads run on, one thread each; where `pin`, they are
/// bound to them.
std::unique_ptr<Context> make_cpu_context(DeviceId device, std::vector<int> cores, bool pin);

/// `deterministic`: only algorithms that give the same bits run after run. `spin`: the host waits for the GPU
/// busily, which is faster where the thread has a core to itself; else it sleeps. Throws UserError if there
/// is no such GPU, or it cannot run this program.
std::unique_ptr<Context> make_gpu_context(DeviceId device, bool deterministic, bool spin = true);

/// The cores that this process may run on, whatever threads have been bound to since.
std::vector<int> available_cores();
/// Those of available_cores() that are near a device of the PCI bus ("0000:41:00.0"), as Linux tells in
/// /sys/bus/pci/devices: of its NUMA node. All if that is unknown, or if none of them is. `root`: where /sys
/// is.
std::vector<int> cores_near(const std::string& pci, const std::string& root = "");

/// The host's memory as this process may use it, in bytes.
struct HostMemory {
  uint64_t total = 0;      // the machine's, without swap
  uint64_t available = 0;  // that may be taken now without swapping, beside what others use
  uint64_t limit = 0;      // that the process may have at most, swap included
  std::string whose;       // limit that is: "the machine's memory", "the limit in /sys/fs/cgroup/..."
  uint64_t used = 0;       // of the limit, by this process

  /// What the process may still take at most. A 64th of the limit is left to what no plan counts: stacks,
  /// page tables, buffers of libraries.
  uint64_t left() const;
};
/// Of the machine, the process's control groups (version 1 and 2, with all that they stand in) and ulimit.
/// `root`: where /proc and /sys are.
HostMemory host_memory(const std::string& root = "");

/// What `dtrain gpus` says of the CPU.
struct CpuInfo {
  std::string name;  // "AMD EPYC 9B45"
  int cores = 1;     // that this process may use
  HostMemory memory;
  std::string instruction_set;  // "avx512_vnni", the best that the operations use here
};
CpuInfo cpu_info();

/// "2.6.3", of the library that computes on the CPU, as built with; and the one that is there, where that is
/// another.
std::string onednn_version();
/// "13.0", of the CUDA that this program was built with; empty where it was built without.
std::string cuda_build_version();

/// The number of GPUs that this process can use, and why there is none where there is none ("built without
/// CUDA").
struct GpuPresence {
  int count = 0;
  std::string reason;
};
GpuPresence gpu_presence();

/// Why this program cannot compute on a GPU that is present: "its compute capability is 7.5, and ..."; empty
/// if nothing is known against it. Makes no context.
std::string gpu_obstacle(int index);

/// Whether this machine seems to have a GPU that somebody expects to be used: NVIDIA's driver is loaded or
/// knows of one, or CUDA_VISIBLE_DEVICES names one. False where CUDA_VISIBLE_DEVICES hides them all ("" or
/// "-1"). `root`: where /dev is.
bool gpu_is_expected(const std::string& root = "");

/// What a run may plan with of so many free bytes of a GPU. The rest is left to the driver and the libraries,
/// which take memory by themselves while a run goes on: kernels, when they are first called (192 MiB or a
/// 16th); captured graphs, and what is lost between allocations (a 32nd).
size_t usable_gpu_bytes(size_t free);

}  // namespace dtrain
