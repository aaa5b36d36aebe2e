// Collectives over GPUs with NCCL: one communicator per replica of this process.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <nccl.h>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/exit_deadline.h"
#include "base/threads.h"
#include "collective/collective.h"
#include "collective/nccl_library.h"
#include "device/cuda/check.h"
#include "device/cuda/context.h"
#include "device/cuda/current.h"

namespace dtrain {
namespace {

Error nccl_error(ncclResult_t status, const char* what) {
  return Error(fmt::format("{} failed: NCCL error {}, {}; set NCCL_DEBUG=WARN in the environment for details",
                           what, static_cast<int>(status), ncclGetErrorString(status)));
}

void check_nccl(ncclResult_t status, const char* what) {
  if (status != ncclSuccess) throw nccl_error(status, what);
}

/// The first NCCL version in which ncclCommAbort() can be called inside a group safely: it frees the
/// communicator only at the end of the group. Older versions free the communicator at once, although other
/// threads may still be inside a call on it.
constexpr int kAbortsInGroups = 22200;
/// The oldest supported version of the library. A library is compatible only with headers of the same or an
/// older version, so it must be at least as new as the headers of this build.
constexpr int kOldestVersion = std::max(kAbortsInGroups, NCCL_VERSION(NCCL_MAJOR, NCCL_MINOR, 0));

int loaded_version() {
  int version = 0;
  return ncclGetVersion(&version) == ncclSuccess ? version : 0;
}

/// Formats a version: 22809 is "2.28.9". Versions before 2.9 have one digit less: 2804 is "2.8.4".
std::string version_text(int version) {
  const int of_major = version < 10000 ? 1000 : 10000;
  return fmt::format("{}.{}.{}", version / of_major, version % of_major / 100, version % 100);
}

void check_version() {
  const int found = loaded_version();
  if (found == 0 || found >= kOldestVersion) return;
  const std::string path = nccl_path();
  throw UserError(fmt::format(
      "NCCL {}{} is too old for training on several GPUs; this program needs NCCL {}.{} or newer. Install "
      "a newer NCCL (package libnccl2, or the Python wheel nvidia-nccl-cu{}) and put its folder first in "
      "LD_LIBRARY_PATH",
      version_text(found), path.empty() ? "" : " (" + path + ")", kOldestVersion / 10000,
      kOldestVersion / 100 % 100, CUDART_VERSION / 1000));
}

/// Creates a communicator for each of this process's GPUs. `ranks`: the ranks of the GPUs of all processes.
std::vector<ncclComm_t> connect(const std::vector<int>& gpus, const ReplicaRanks& ranks, World& world) {
  ncclUniqueId id;
  if (world.rank() == 0) check_nccl(ncclGetUniqueId(&id), "starting NCCL");
  world.broadcast(std::as_writable_bytes(std::span(&id, 1)));
  const auto size = static_cast<int>(gpus.size());
  std::vector<ncclComm_t> communicators(gpus.size());
  // The calls must be in one group, because each call waits for the calls of all other GPUs. A group that has
  // been started must be ended even after an error.
  ncclResult_t status = ncclGroupStart();
  for (int rank = 0; rank < size && status == ncclSuccess; ++rank) {
    const auto at = static_cast<size_t>(rank);
    const cuda::OnDevice on(gpus[at]);
    status = ncclCommInitRank(&communicators[at], ranks.total(), id, ranks.first() + rank);
  }
  const ncclResult_t ended = ncclGroupEnd();
  const ncclResult_t result = status != ncclSuccess ? status : ended;
  if (result == ncclInvalidUsage && world.size() > 1)
    throw UserError(
        "NCCL cannot connect the GPUs. The usual reason is that several processes use the same GPU: start at "
        "most one process for each GPU, or set CUDA_VISIBLE_DEVICES for each process. With NCCL_DEBUG=WARN, "
        "NCCL prints the reason");
  check_nccl(result, "connecting the GPUs");
  return communicators;
}

/// The communicators of this process's GPUs. If the group is aborted, a separate thread frees the
/// communicators: freeing waits until no graph uses a communicator any more, and this must not block a
/// replica. The thread may outlive the users of the group.
class NcclGroup {
 public:
  /// Creates a group; it is closed when the last reference is released.
  static std::shared_ptr<NcclGroup> make(const std::vector<int>& gpus, World& world) {
    const std::shared_ptr<NcclGroup> made(new NcclGroup(gpus, world));
    const std::shared_ptr<NcclGroup> group(made.get(), [made](NcclGroup*) { made->close(); });
    made->ender_ = start_thread("ending NCCL's group", [made] { made->end_where_aborted(); });
    return group;
  }
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;

  int size() const { return static_cast<int>(communicators_.size()); }
  /// Returns the rank of the first member of this process among the members of all processes.
  int first() const { return first_; }

  /// Runs call(communicator) on the thread of member `rank`.
  template <class Call>
  void run(int rank, const char* what, const Call& call) {
    const Inside inside(inside_);
    check();  // must follow `inside`, which keeps other threads from freeing the communicator
    const ncclResult_t status = call(communicators_[static_cast<size_t>(rank)]);
    if (status == ncclSuccess) return;
    check();  // if another member failed first, throws the error of that member
    throw nccl_error(status, what);
  }

  void check() {
    if (aborted_) throw Aborted();
  }

  void abort() noexcept {
    {
      const std::lock_guard lock(mutex_);
      aborted_ = true;
    }
    changed_.notify_all();
  }

  /// Returns the message of an asynchronous error that no call has reported, such as a lost link; otherwise
  /// "". Does not detect a failure of a GPU itself.
  std::string failure() {
    const Inside inside(inside_);
    for (const ncclComm_t communicator : communicators_) {
      if (aborted_) break;
      ncclResult_t found = ncclSuccess;
      const ncclResult_t asked = ncclCommGetAsyncError(communicator, &found);
      const ncclResult_t status = asked != ncclSuccess ? asked : found;
      if (status != ncclSuccess && status != ncclInProgress)
        return nccl_error(status, "summing over the GPUs").what();
    }
    return "";
  }

 private:
  NcclGroup(const std::vector<int>& gpus, World& world)
      : NcclGroup(gpus, world.replica_ranks(static_cast<int>(gpus.size())), world) {}
  NcclGroup(const std::vector<int>& gpus, const ReplicaRanks& ranks, World& world)
      : first_gpu_(gpus[0]), first_(ranks.first()), communicators_(connect(gpus, ranks, world)) {}

  /// Joins the thread that frees the communicators after an abort. If a failed GPU does not release its
  /// graphs, freeing never returns, so the thread is detached instead. Without an abort, frees the
  /// communicators here.
  void close() noexcept {
    std::unique_lock lock(mutex_);
    closing_ = true;
    changed_.notify_all();
    const bool in_time =
        changed_.wait_for(lock, cleanup_limit() / 3, [this] { return ended_ || !ender_.joinable(); });
    lock.unlock();
    if (!in_time) {
      note_stuck_thread();
      ender_.detach();
    } else if (ender_.joinable()) {
      ender_.join();
    }
    if (aborted_) return;
    // The calls must be in one group, because each call waits for the calls of the other GPUs of this
    // machine.
    ncclGroupStart();
    for (const ncclComm_t communicator : communicators_) ncclCommDestroy(communicator);
    ncclGroupEnd();
  }

  class Inside {
   public:
    explicit Inside(std::atomic<int>& count) : count_(count) { ++count_; }
    ~Inside() { --count_; }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

   private:
    std::atomic<int>& count_;
  };

  void end_where_aborted() noexcept {
    // Makes first_gpu_ the current device, because NCCL selects the previous current device again at the end
    // of each call. Without this line, the previous device would be GPU 0, and NCCL would initialize GPU 0
    // for this thread.
    cudaSetDevice(cuda::ordinal(first_gpu_));
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return aborted_ || closing_; });
    if (aborted_) {
      lock.unlock();
      end_all();
      lock.lock();
    }
    ended_ = true;
    changed_.notify_all();
  }

  /// Aborts all communicators in one NCCL group. At the start of the group, NCCL cancels the calls that run
  /// on the communicators, so that threads that wait inside NCCL for a failed member return. NCCL frees the
  /// communicators only at the end of the group.
  void end_all() {
    ncclGroupStart();
    for (const ncclComm_t communicator : communicators_) ncclCommAbort(communicator);
    while (inside_ > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ncclGroupEnd();
  }

  const int first_gpu_, first_;
  const std::vector<ncclComm_t> communicators_;  ///< indexed by local rank
  std::atomic<int> inside_{0};  ///< number of threads inside an NCCL call or about to check `aborted_`
  std::atomic<bool> aborted_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  bool closing_ = false, ended_ = false;
  std::thread ender_;
};

class NcclCollective final : public DeviceCollective {
 public:
  NcclCollective(std::shared_ptr<NcclGroup> group, cuda::CudaContext& context, int rank)
      : group_(std::move(group)), context_(context), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return group_->size(); }

  void all_reduce(float* data, int64_t n) override { all_reduce(data, n, ncclFloat); }
  void all_reduce(double* data, int64_t n) override { all_reduce(data, n, ncclDouble); }

  void broadcast(const float* src, float* dst, int64_t n, int root) override {
    enqueue("copying among the GPUs", n, [&](ncclComm_t communicator) {
      return ncclBroadcast(group_->first() + rank_ == root ? src : dst, dst, static_cast<size_t>(n),
                           ncclFloat, root, communicator, context_.collective());
    });
  }
  void reduce(const float* src, float* dst, int64_t n, int root) override {
    enqueue("summing over the GPUs", n, [&](ncclComm_t communicator) {
      return ncclReduce(src, dst, static_cast<size_t>(n), ncclFloat, ncclSum, root, communicator,
                        context_.collective());
    });
  }

  void join() override {
    // Joins the collective stream only if a collective call has forked it. Otherwise, joining would add the
    // stream to a capture to which it does not belong.
    if (std::exchange(forked_, false)) context_.join_collective();
  }
  void check() override { group_->check(); }
  void abort() noexcept override { group_->abort(); }
  std::string failure() override { return group_->failure(); }

 private:
  void all_reduce(void* data, int64_t n, ncclDataType_t type) {
    enqueue("summing over the GPUs", n, [&](ncclComm_t communicator) {
      return ncclAllReduce(data, data, static_cast<size_t>(n), type, ncclSum, communicator,
                           context_.collective());
    });
  }
  template <class Call>
  void enqueue(const char* what, int64_t n, const Call& call) {
    if (n == 0) return;
    context_.fork_collective();
    forked_ = true;
    group_->run(rank_, what, call);
  }

  std::shared_ptr<NcclGroup> group_;
  cuda::CudaContext& context_;
  int rank_;
  bool forked_ = false;  ///< whether a collective call was forked since the last join
};

}  // namespace

std::vector<std::unique_ptr<DeviceCollective>> make_nccl_group(std::span<Context* const> contexts,
                                                               World& world) {
  std::vector<cuda::CudaContext*> members;
  std::vector<int> gpus;
  for (Context* context : contexts) {
    members.push_back(dynamic_cast<cuda::CudaContext*>(context));
    if (!members.back()) throw Error("NCCL supports only GPUs, not " + context->device().str());
    const int gpu = members.back()->index();
    if (std::count(gpus.begin(), gpus.end(), gpu) > 0)
      throw Error("NCCL needs a separate GPU for each replica, but several replicas use " +
                  context->device().str());
    gpus.push_back(gpu);
  }
  check_version();
  const std::shared_ptr<NcclGroup> group = NcclGroup::make(gpus, world);
  std::vector<std::unique_ptr<DeviceCollective>> collectives;
  for (size_t rank = 0; rank < members.size(); ++rank)
    collectives.push_back(std::make_unique<NcclCollective>(group, *members[rank], static_cast<int>(rank)));
  return collectives;
}

bool nccl_available() {
  return loaded_version() != 0;
}

std::string nccl_version() {
  const int version = loaded_version();
  return version == 0 ? "" : version_text(version);
}

void set_nccl_environment(bool deterministic) {
  // Steps never make NCCL calls outside a graph while a graph with NCCL calls runs, so support for mixing
  // both is not needed. NCCL's documentation reports hangs if this support is on.
  setenv("NCCL_GRAPH_MIXING_SUPPORT", "0", 0);
  // NCCL connects all algorithms when the communicators are created. By default, it connects an algorithm
  // when a reduction first uses it, and allocates memory while other GPUs wait in their reductions.
  setenv("NCCL_RUNTIME_CONNECT", "0", 0);
  if (!deterministic) return;
  setenv("NCCL_ALGO", "Ring", 0);
  // For registered graph buffers, NCCL may select a different algorithm, which adds the numbers in a
  // different order.
  setenv("NCCL_GRAPH_REGISTER", "0", 0);
}

}  // namespace dtrain
