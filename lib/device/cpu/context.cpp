#include <algorithm>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "device/cpu/affinity.h"
#include "device/cpu/denormals.h"
#include "device/cpu/memory.h"
#include "device/cpu/openmp.h"
#include "device/device.h"

namespace dtrain {
namespace {

/// False under ThreadSanitizer, which does not understand the synchronization of libgomp. In this case, every
/// context has a single thread and does not use OpenMP.
constexpr bool kThreaded = DTRAIN_OPENMP_THREADS;

/// An event that does nothing, because operations on a CPU are complete when their call returns.
class PassedEvent final : public Event {
 public:
  void record() override {}
  void synchronize() override {}
  bool has_completed() const noexcept override { return true; }
};

class CpuContext final : public Context {
 public:
  CpuContext(DeviceId device, std::vector<int> cores, bool pin)
      : device_(device), cores_(std::move(cores)), pin_(pin), all_cores_(available_cores()) {
    if (cores_.empty())
      throw Error(fmt::format("{}: the device context needs at least one CPU core", device_.str()));
    if (!kThreaded) cores_.resize(1);
  }
  ~CpuContext() override { detach(); }

  DeviceId device() const override { return device_; }
  int threads() const override { return static_cast<int>(cores_.size()); }

  void attach() override {
    detach();
    before_ = Before{std::this_thread::get_id(), cpu::thread_cores(), cpu::flush_denormals()};
    // Overrides OMP_NUM_THREADS, OMP_DYNAMIC and OMP_MAX_ACTIVE_LEVELS.
    omp_set_dynamic(0);
    omp_set_max_active_levels(1);
    omp_set_num_threads(threads());
    if (threads() == 1) return bind(0);
    int given = 1;
    cpu::openmp_region(threads(), [&](int thread, int team) {
      cpu::flush_denormals();
      bind(thread);
      if (thread == 0) given = team;
    });
    if (given != threads()) {
      throw UserError(
          fmt::format("{}: expected {} threads, but OpenMP provides {}; OMP_THREAD_LIMIT in the environment "
                      "may be the cause",
                      device_.str(), threads(), given));
    }
  }

  void detach() override {
    if (before_ && before_->thread == std::this_thread::get_id()) {
      cpu::bind_thread(before_->cores);
      cpu::restore_denormals(before_->denormals);
    }
    before_.reset();
  }

  size_t free_bytes() override { return host_memory().left(); }
  void copy_to_device(void* dst, const void* src, size_t bytes) override { copy(dst, src, bytes); }
  void copy_to_host(void* dst, const void* src, size_t bytes) override { copy(dst, src, bytes); }
  // On a CPU, all of the following operations are synchronous.
  Buffer allocate_host(size_t bytes) override { return cpu::allocate(bytes); }
  void enqueue_copy(void* dst, const void* src, size_t bytes) override { copy_to_device(dst, src, bytes); }
  void enqueue_zero(void* dst, size_t bytes) override {
    if (bytes > 0) std::memset(dst, 0, bytes);
  }
  std::unique_ptr<Event> make_event() override { return std::make_unique<PassedEvent>(); }
  void wait(const Event&) override {}
  void upload(void* dst, const void* src, size_t bytes, const Event&, Event&) override {
    copy_to_device(dst, src, bytes);
  }
  std::unique_ptr<CapturedGraph> capture(const std::function<void()>&) override { return nullptr; }
  void synchronize() override {}

 private:
  Buffer take(size_t bytes) override { return cpu::allocate(bytes); }

  /// Copies large arrays with all threads: a single thread cannot saturate the memory bandwidth.
  void copy(void* dst, const void* src, size_t bytes) const {
    constexpr size_t kPiece = size_t{1} << 20;
    if (threads() == 1 || bytes <= 2 * kPiece) {
      if (bytes > 0) std::memcpy(dst, src, bytes);
      return;
    }
    const size_t pieces = (bytes + kPiece - 1) / kPiece;
    cpu::openmp_region(threads(), [&](size_t thread, size_t team) {
      const size_t begin = pieces * thread / team * kPiece,
                   end = std::min(bytes, pieces * (thread + 1) / team * kPiece);
      if (begin < end)
        std::memcpy(static_cast<std::byte*>(dst) + begin, static_cast<const std::byte*>(src) + begin,
                    end - begin);
    });
  }

  /// State of the calling thread before attach(), restored by detach().
  struct Before {
    std::thread::id thread;
    std::vector<int> cores;
    unsigned denormals;
  };

  /// Binds the calling thread to its core. If pinning is off, allows the thread to run on all cores, because
  /// OMP_PROC_BIND or a bound parent thread may have restricted it to one core.
  void bind(int thread) const {
    cpu::bind_thread(pin_ ? std::vector<int>{cores_[static_cast<size_t>(thread)]} : all_cores_);
  }

  DeviceId device_;
  std::vector<int> cores_;
  bool pin_;
  std::vector<int> all_cores_;
  std::optional<Before> before_;
};

}  // namespace

std::unique_ptr<Context> make_cpu_context(DeviceId device, std::vector<int> cores, bool pin) {
  return std::make_unique<CpuContext>(device, std::move(cores), pin);
}

}  // namespace dtrain
