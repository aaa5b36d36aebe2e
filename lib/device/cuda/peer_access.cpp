#include "device/peer_access.h"

#include <algorithm>
#include <cstdint>
#include <cuda_runtime.h>
#include <map>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "device/cuda/check.h"
#include "device/cuda/current.h"
#include "device/cuda/handle.h"
#include "device/cuda/memory.h"

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

/// Copies data from sender to receiver in the same way as links (collective/link.h), and checks that it
/// arrives undamaged.
bool arrives_whole(int sender, int receiver) {
  constexpr size_t kNumbers = size_t{1} << 18, kBytes = kNumbers * sizeof(uint32_t);
  std::vector<uint32_t> sent(kNumbers), arrived(kNumbers);
  for (size_t i = 0; i < kNumbers; ++i) sent[i] = static_cast<uint32_t>(i) * 2654435761u + 1;
  const auto make_stream = [] {
    cudaStream_t stream = nullptr;
    cuda::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "creating a stream");
    return cuda::Owned<cudaStream_t, cudaStreamDestroy>(stream);
  };
  const auto copy = [](void* dst, const void* src, cudaStream_t stream) {
    cuda::check(cudaMemcpyAsync(dst, src, kBytes, cudaMemcpyDefault, stream),
                "copying from one GPU to another");
    cuda::check(cudaStreamSynchronize(stream), "copying from one GPU to another");
  };
  Buffer there;
  {
    const cuda::OnDevice on(sender);
    const auto stream = make_stream();
    there = cuda::allocate_device(kBytes, stream.get());
    copy(there.data(), sent.data(), stream.get());
  }
  const cuda::OnDevice on(receiver);
  const auto stream = make_stream();
  const Buffer here = cuda::allocate_device(kBytes, stream.get());
  copy(here.data(), there.data(), stream.get());
  copy(arrived.data(), here.data(), stream.get());
  return sent == arrived;
}

/// Connects two GPUs. Returns a note for the user, or "" if there is no problem.
std::string connect(int a, int b) {
  std::string failed;
  if (peer_access_is_wanted()) {
    failed = let_reach(a, b);
    if (const std::string back = let_reach(b, a); failed.empty()) failed = back;
  }
  const auto whole = [&] { return arrives_whole(a, b) && arrives_whole(b, a); };
  const std::string pair = fmt::format("gpu:{} and gpu:{}", a, b);
  if (whole()) {
    if (failed.empty()) return "";
    return fmt::format(
        "{} cannot access each other's memory because of {}; copies between these GPUs go through host "
        "memory",
        pair, failed);
  }
  stop_reaching(a, b);
  stop_reaching(b, a);
  constexpr auto kHint =
      "An IOMMU or PCIe access control (ACS) may be the cause; disable both in the machine's settings";
  if (!whole())
    throw Error(fmt::format("{}: data copied between these GPUs arrive damaged. {}", pair, kHint));
  return fmt::format(
      "{}: data copied by peer access arrive damaged, so copies go through host memory. {}. NCCL does not "
      "detect this; set NCCL_P2P_DISABLE=1 in the environment",
      pair, kHint);
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
