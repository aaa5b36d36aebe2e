// Emulates the part of NCCL that dtrain uses. All members are in one process. The calls of the members
// complete when the streams of all members have reached them.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <nccl.h>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "collective/nccl_library.h"
#include "emulation/memory.h"
#include "emulation/queue.h"

using namespace dtrain::emulation;

namespace {

enum class What { all_reduce, broadcast, reduce };

struct Call {
  What what = What::all_reduce;
  int root = 0;
  const void* src = nullptr;
  void* dst = nullptr;
  size_t count = 0;
  ncclDataType_t type = ncclFloat;
  bool captured = false;

  size_t bytes() const { return count * (type == ncclDouble ? sizeof(double) : sizeof(float)); }
};

/// The members of a group, which were connected with the same id.
struct Clique {
  int size = 0;
  int joined = 0, leaving = 0;
  bool aborted = false;
  std::vector<int> devices;    // devices of the members, by rank
  std::vector<int64_t> calls;  // indexed by rank: number of queued calls
  // Number of captured calls that were launched and have not run yet, indexed by rank.
  std::vector<int> replayed;
  std::vector<std::optional<Call>> met;  // the call that the member's stream has reached, indexed by rank
  std::vector<bool> done;
};

std::map<uint64_t, std::shared_ptr<Clique>> cliques;
uint64_t last_id = 0;
int64_t aborts = 0;
NcclCalls blocked_calls = NcclCalls::none;
int version_told = 0;  // version that ncclGetVersion returns; 0: the version of the header
int lost_device = -1;  // device whose link is lost

thread_local int groups = 0;
// The communicators that this thread has begun to create or to end in the open group.
thread_local std::vector<ncclComm_t> begun, ended;

/// Returns the first rank in the order of a sum. Unless NCCL_ALGO is set, NCCL may choose any algorithm, and
/// therefore any order.
size_t first_rank(size_t ranks) {
  const char* algorithm = std::getenv("NCCL_ALGO");
  return algorithm && std::strcmp(algorithm, "Ring") == 0 ? 0 : random_number() % ranks;
}

template <class T>
void sum_calls(std::vector<std::optional<Call>>& calls) {
  std::vector<T> result(calls[0]->count);
  const size_t first = first_rank(calls.size());
  for (size_t rank = 0; rank < calls.size(); ++rank) {
    const auto* src = static_cast<const T*>(calls[(first + rank) % calls.size()]->src);
    for (size_t i = 0; i < result.size(); ++i) result[i] += src[i];
  }
  for (size_t rank = 0; rank < calls.size(); ++rank)
    if (calls[rank]->what == What::all_reduce || static_cast<int>(rank) == calls[rank]->root)
      std::copy(result.begin(), result.end(), static_cast<T*>(calls[rank]->dst));
}

void broadcast(std::vector<std::optional<Call>>& calls) {
  const Call& from = *calls[static_cast<size_t>(calls[0]->root)];
  const std::vector<std::byte> bytes(static_cast<const std::byte*>(from.src),
                                     static_cast<const std::byte*>(from.src) + from.bytes());
  for (const auto& call : calls) std::copy(bytes.begin(), bytes.end(), static_cast<std::byte*>(call->dst));
}

/// Computes the collective call after the last member's stream has reached it.
void meet(Clique& clique) {
  const Call& first = *clique.met[0];
  for (const auto& call : clique.met) {
    if (call->count != first.count || call->type != first.type || call->what != first.what ||
        call->root != first.root)
      return fail_device("members of an NCCL communicator make different calls");
    if (call->captured != first.captured)
      return fail_device("some members of an NCCL communicator capture a sum, and others do not");
  }
  if (first.what == What::broadcast) {
    broadcast(clique.met);
  } else {
    first.type == ncclDouble ? sum_calls<double>(clique.met) : sum_calls<float>(clique.met);
  }
  for (auto& call : clique.met) call.reset();
  clique.done.assign(clique.done.size(), true);
}

}  // namespace

namespace dtrain::emulation {

int64_t nccl_aborts() {
  return aborts;
}

void block_nccl(NcclCalls calls) {
  const auto lock = lock_machine();
  blocked_calls = calls;
}

void set_nccl_version(int version) {
  const auto lock = lock_machine();
  version_told = version;
}

void lose_nccl_link(int device) {
  const auto lock = lock_machine();
  lost_device = device;
}

void wait_for_all_devices(const char* call) {
  if (any_broken()) return;  // some members may not have noticed the failure yet
  for (const auto& [id, clique] : cliques) {
    const auto& [devices, calls] = std::tie(clique->devices, clique->calls);
    if (clique->aborted || std::find(devices.begin(), devices.end(), current_device()) == devices.end())
      continue;
    if (std::adjacent_find(calls.begin(), calls.end(), std::not_equal_to<>()) != calls.end())
      fail_device(std::string(call) + ", while some members have queued an NCCL call and others have not");
  }
}

}  // namespace dtrain::emulation

std::string dtrain::nccl_path() {
  return "/emulated/libnccl.so.2";
}

struct ncclComm {
  std::shared_ptr<Clique> clique;
  int rank;
  int device;
  /// `uses`: references that are held by all work that uses the communicator. `graph_uses`: references that
  /// are held only by captured work.
  std::shared_ptr<int> uses = std::make_shared<int>(), graph_uses = std::make_shared<int>();
};

namespace {

ncclResult_t call(ncclComm_t comm, const Call& what, cudaStream_t stream) {
  const auto lock = lock_machine();
  Clique& clique = *comm->clique;
  if (clique.aborted) return ncclInvalidUsage;
  const size_t bytes = what.bytes();
  if (what.root < 0 || what.root >= clique.size) return ncclInvalidArgument;
  const bool writes = what.what != What::reduce || comm->rank == what.root;
  if (!is_device_memory(what.src, bytes) || (writes && !is_device_memory(what.dst, bytes)))
    return ncclInvalidArgument;
  if (device_of(what.src) != comm->device || current_device() != comm->device) return ncclInvalidUsage;
  const auto rank = static_cast<size_t>(comm->rank);
  // According to the documentation of NCCL_GRAPH_MIXING_SUPPORT, calls outside of graphs may hang if they run
  // at the same time as calls in a graph.
  if (!what.captured && clique.replayed[rank] > 0)
    fail_device(
        "an NCCL call outside of a graph, while a graph's call of the same communicator is under way");
  const auto graph_uses = what.captured ? comm->graph_uses : nullptr;
  const auto ready = [held = comm->clique, uses = comm->uses, graph_uses, device = comm->device, rank, what] {
    Clique& c = *held;
    if (c.aborted || c.done[rank]) return true;
    if (device == lost_device) return false;
    if (!c.met[rank]) c.met[rank] = what;
    return std::all_of(c.met.begin(), c.met.end(), [](const auto& one) { return one.has_value(); });
  };
  const auto run = [held = comm->clique, uses = comm->uses, rank, captured = what.captured] {
    Clique& c = *held;
    if (captured) --c.replayed[rank];
    if (c.aborted) return;
    if (!c.done[rank]) meet(c);
    c.done[rank] = false;
  };
  const auto queued = [held = comm->clique, rank, captured = what.captured] {
    ++held->calls[rank];
    if (captured) ++held->replayed[rank];
  };
  return answer(enqueue(stream, run, ready, queued)) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

std::condition_variable members_changed;  // wakes threads that wait for all members of a communicator

/// Waits while these calls are blocked.
void wait_while_blocked(NcclCalls calls, std::unique_lock<std::mutex>& lock) {
  while (blocked_calls == calls) members_changed.wait_for(lock, std::chrono::milliseconds(10));
}

/// Waits until all members have joined the communicators that this thread creates.
void connect(std::unique_lock<std::mutex>& lock) {
  if (!begun.empty()) wait_while_blocked(NcclCalls::connecting, lock);
  for (const ncclComm_t comm : begun) ++comm->clique->joined;
  members_changed.notify_all();
  for (const ncclComm_t comm : begun)
    members_changed.wait(lock, [&] { return comm->clique->joined >= comm->clique->size; });
  begun.clear();
}

/// Waits until all members end the communicators that this thread ends. According to the documentation,
/// ending a communicator is a collective call among the ranks on a machine. If a member does not make this
/// call, the library waits forever. Aborted communicators are freed only after no graph uses them any more.
void end_communicators(std::unique_lock<std::mutex>& lock) {
  constexpr std::chrono::seconds kPatience{2};
  if (!ended.empty() && !ended[0]->clique->aborted) wait_while_blocked(NcclCalls::destroying, lock);
  for (const ncclComm_t comm : ended) ++comm->clique->leaving;
  members_changed.notify_all();
  for (const ncclComm_t comm : ended) {
    const auto all_leave = [&] { return comm->clique->leaving >= comm->clique->size; };
    if (!members_changed.wait_for(lock, kPatience, all_leave))
      fail_device("an NCCL communicator is ended, and waits for members that are not");
  }
  const auto held = [](ncclComm_t comm) {
    return comm->clique->aborted &&
           (blocked_calls == NcclCalls::aborting || comm->graph_uses.use_count() > 1);
  };
  while (std::any_of(ended.begin(), ended.end(), held)) {
    run_all();
    members_changed.wait_for(lock, std::chrono::milliseconds(10));
  }
  for (const ncclComm_t comm : ended) delete comm;
  ended.clear();
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = version_told > 0 ? version_told : NCCL_VERSION_CODE;
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t status) {
  return status == ncclSuccess ? "no error" : "an emulated NCCL error";
}
const char* ncclGetLastError(ncclComm_t) {
  return "";
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const auto lock = lock_machine();
  std::memset(id, 0, sizeof *id);
  ++last_id;
  std::memcpy(id, &last_id, sizeof last_id);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t* made, int size, ncclUniqueId id, int rank) {
  auto lock = lock_machine();
  uint64_t key = 0;
  std::memcpy(&key, &id, sizeof key);
  if (key == 0 || key > last_id || size < 1 || rank < 0 || rank >= size) return ncclInvalidArgument;
  if (forbid_capture() != cudaSuccess) return ncclInvalidUsage;
  auto& clique = cliques[key];
  if (!clique) {
    clique = std::make_shared<Clique>();
    clique->size = size;
    clique->met.resize(static_cast<size_t>(size));
    clique->done.resize(static_cast<size_t>(size));
    clique->devices.resize(static_cast<size_t>(size), -1);
    clique->calls.resize(static_cast<size_t>(size));
    clique->replayed.resize(static_cast<size_t>(size));
  }
  clique->devices[static_cast<size_t>(rank)] = current_device();
  *made = new ncclComm{clique, rank, current_device()};
  begun.push_back(*made);
  if (groups == 0) connect(lock);
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  ++groups;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  auto lock = lock_machine();
  if (groups == 0) return ncclInvalidUsage;
  if (--groups > 0) return ncclSuccess;
  connect(lock);
  end_communicators(lock);
  return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  auto lock = lock_machine();
  // The real ncclCommDestroy would never return while work or a graph uses the communicator.
  if (comm->uses.use_count() > 1) fail_device("an NCCL communicator is destroyed that work or a graph uses");
  ended.push_back(comm);
  if (groups == 0) end_communicators(lock);
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  auto lock = lock_machine();
  comm->clique->aborted = true;
  ++aborts;
  notify_change();
  ended.push_back(comm);
  if (groups == 0) end_communicators(lock);
  return ncclSuccess;
}

/// As in NCCL, this function does not report failures of the device itself.
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* status) {
  const auto lock = lock_machine();
  *status = comm->device == lost_device ? ncclRemoteError : ncclSuccess;
  return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void* src, void* dst, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  if ((type != ncclFloat && type != ncclDouble) || op != ncclSum) return ncclInvalidArgument;
  return call(comm, {What::all_reduce, 0, src, dst, count, type, is_captured(stream)}, stream);
}

ncclResult_t ncclBroadcast(const void* src, void* dst, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  if (type != ncclFloat) return ncclInvalidArgument;
  return call(comm, {What::broadcast, root, src, dst, count, type, is_captured(stream)}, stream);
}

ncclResult_t ncclReduce(const void* src, void* dst, size_t count, ncclDataType_t type, ncclRedOp_t op,
                        int root, ncclComm_t comm, cudaStream_t stream) {
  if (type != ncclFloat || op != ncclSum) return ncclInvalidArgument;
  return call(comm, {What::reduce, root, src, dst, count, type, is_captured(stream)}, stream);
}

}  // extern "C"
