#include "device/peer_access.h"

#include <algorithm>
#include <cstdint>
#include <cuda_runtime.h>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/exit_deadline.h"
#include "device/cuda/check.h"
#include "device/cuda/current.h"
#include "device/cuda/handle.h"
#include "device/cuda/memory.h"
#include "device/cuda/test_pattern.h"

namespace dtrain {

namespace {

struct State {
  std::mutex mutex;
  // Notes about problems, indexed by pair of GPUs (the lower index first). A note is "" if the pair has no
  // problem.
  std::map<std::pair<int, int>, std::string> notes;
};

State& state() {
  static State only;
  return only;
}

/// Enables access from GPU `index` to the memory of GPU `peer`. Returns the error if this fails although CUDA
/// reports that the access is possible. Otherwise returns "".
std::string let_reach(int index, int peer) {
  const cuda::OnDevice on(index);
  int can = 0;
  cuda::check(cudaDeviceCanAccessPeer(&can, cuda::ordinal(index), cuda::ordinal(peer)),
              "querying peer access");
  if (!can) return "";
  const cudaError_t status = cudaDeviceEnablePeerAccess(cuda::ordinal(peer), 0);
  cudaGetLastError();
  if (status == cudaSuccess || status == cudaErrorPeerAccessAlreadyEnabled) return "";
  return cuda::error_text(status);
}

void stop_reaching(int index, int peer) {
  const cuda::OnDevice on(index);
  cudaDeviceDisablePeerAccess(cuda::ordinal(peer));  // does no harm if access is not enabled
  cudaGetLastError();
}

constexpr auto kPeerHint =
    "An IOMMU or PCIe access control (ACS) may be the cause; disable both in the machine's settings";

/// One GPU of a test copy.
class CopyEnd {
 public:
  static constexpr size_t kNumbers = size_t{1} << 18, kBytes = kNumbers * sizeof(uint32_t);

  explicit CopyEnd(int index) : index_(index) {
    const cuda::OnDevice on(index_);
    cudaStream_t stream = nullptr;
    cuda::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "creating a stream");
    stream_.reset(stream);
    memory_ = cuda::allocate_device(kBytes, stream_.get());
  }

  void write(const std::vector<uint32_t>& numbers) { copy_here(memory_.data(), numbers.data()); }
  std::vector<uint32_t> read() {
    std::vector<uint32_t> numbers(kNumbers);
    copy_here(numbers.data(), memory_.data());
    return numbers;
  }
  /// Copies on the stream of this GPU from the other GPU, or to the other GPU.
  void pull(const CopyEnd& other) { copy_here(memory_.data(), other.memory_.data()); }
  void push(CopyEnd& other) { copy_here(other.memory_.data(), memory_.data()); }

 private:
  void copy_here(void* dst, const void* src) {
    const cuda::OnDevice on(index_);
    cuda::check(cudaMemcpyAsync(dst, src, kBytes, cudaMemcpyDefault, stream_.get()),
                "copying from one GPU to another");
    cuda::check(cudaStreamSynchronize(stream_.get()), "copying from one GPU to another");
  }

  int index_;
  cuda::Owned<cudaStream_t, cudaStreamDestroy> stream_;
  Buffer memory_;
};

/// Copies test data from the sender to the receiver in both ways that a link may use (collective/link.h):
/// first the receiver pulls the data, then the sender pushes the data. Returns whether both copies arrive
/// undamaged.
bool arrives_whole(int sender, int receiver) {
  const std::vector<uint32_t> sent = test_pattern(CopyEnd::kNumbers);
  CopyEnd from(sender), to(receiver);
  from.write(sent);
  to.pull(from);
  if (to.read() != sent) return false;
  to.write(std::vector<uint32_t>(sent.size()));
  from.push(to);
  return to.read() == sent;
}

/// Ends the process if test copies never arrive: a stream with such a copy can be neither used nor destroyed.
void limit_test(const std::string& pair, ExitDeadline& deadline) {
  const auto limit = cleanup_limit() * 2 / 3;
  std::string message =
      fmt::format("error: {}: data copied between these GPUs did not arrive within {:g} seconds. {}", pair,
                  limit.count(), kPeerHint);
  if (peer_access_is_wanted())
    message += ", or set DTRAIN_P2P=0 in the environment, which makes copies go through host memory";
  deadline.arm(ExitDeadline::Ending{.message = message + "\n", .limit = limit});
}

/// Connects two GPUs. Returns a note for the user, or "" if there is no problem.
std::string connect(int a, int b) {
  const std::string pair = fmt::format("gpu:{} and gpu:{}", a, b);
  ExitDeadline deadline;
  limit_test(pair, deadline);
  std::string failed;
  if (peer_access_is_wanted()) {
    failed = let_reach(a, b);
    if (const std::string back = let_reach(b, a); failed.empty()) failed = back;
  }
  const auto whole = [&] { return arrives_whole(a, b) && arrives_whole(b, a); };
  if (whole()) {
    if (failed.empty()) return "";
    return fmt::format(
        "{} cannot access each other's memory because of {}; copies between these GPUs go through host "
        "memory",
        pair, failed);
  }
  stop_reaching(a, b);
  stop_reaching(b, a);
  if (!whole())
    throw Error(fmt::format("{}: data copied between these GPUs arrive damaged. {}", pair, kPeerHint));
  return fmt::format(
      "{}: data copied by peer access arrive damaged, so copies go through host memory. {}. NCCL does not "
      "detect this; set NCCL_P2P_DISABLE=1 in the environment",
      pair, kPeerHint);
}

}  // namespace

void connect_gpus(const Context& one, const Context& other) {
  const auto [a, b] = std::minmax({one.device().index, other.device().index});
  if (a == b) return;
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (!s.notes.contains({a, b})) s.notes[{a, b}] = connect(a, b);
}

std::vector<std::string> peer_access_notes() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  std::vector<std::string> all;
  for (const auto& [pair, note] : s.notes)
    if (!note.empty()) all.push_back(note);
  return all;
}

}  // namespace dtrain
