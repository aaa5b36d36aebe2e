// Measures the bandwidth of memory copies.
#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/exit_deadline.h"
#include "device/cuda/check.h"
#include "device/cuda/context.h"
#include "device/cuda/current.h"
#include "device/cuda/test_pattern.h"
#include "device/gpu_info.h"
#include "device/peer_access.h"

namespace dtrain {
namespace {

using cuda::check;
using cuda::CudaContext;

constexpr size_t kBytes = size_t{256} << 20;
constexpr int kTries = 5;

cuda::EventHandle make_timer() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreate(&event), "creating an event");
  return cuda::EventHandle(event);
}

/// Returns the shortest of several timings in seconds, after one warm-up.
double time_of(CudaContext& context, const std::function<void()>& copy) {
  const cuda::EventHandle begin = make_timer(), end = make_timer();
  copy();
  float best = 0;
  for (int i = 0; i < kTries; ++i) {
    check(cudaEventRecord(begin.get(), context.compute()), "timing");
    copy();
    check(cudaEventRecord(end.get(), context.compute()), "timing");
    check(cudaEventSynchronize(end.get()), "timing");
    float took = 0;
    check(cudaEventElapsedTime(&took, begin.get(), end.get()), "timing");
    best = i == 0 ? took : std::min(best, took);
  }
  return std::max(best, 1e-3f) * 1e-3;
}

using Contexts = std::vector<std::unique_ptr<CudaContext>>;  // null for a GPU that cannot be used

/// Returns the data that the measured copies transfer.
std::vector<uint32_t> pattern() {
  return test_pattern(kBytes / sizeof(uint32_t));
}

/// Ends the process if a measurement does not finish. `copies`: the measured copies, as in "to gpu:1".
void limit_copies(const CudaContext& context, const std::string& copies, ExitDeadline& deadline) {
  deadline.arm(ExitDeadline::Ending{
      .message = fmt::format("error: {}: copies {} did not finish within {:g} seconds. Run dmesg to see "
                             "whether the driver has found an error (Xid)\n",
                             context.device().str(), copies, cleanup_limit().count())});
}

/// Measures and verifies a copy between two GPUs. `src` must hold pattern().
void measure_between(CudaContext& from, const Buffer& src, CudaContext& to, GpuSpeed& speed) {
  connect_gpus(from, to);
  ExitDeadline deadline;
  limit_copies(from, "to " + to.device().str(), deadline);
  const Buffer dst = to.allocate(kBytes);
  from.attach();
  speed.to_gpu.back() = kBytes / time_of(from, [&] {
                          check(cudaMemcpyPeerAsync(dst.data(), cuda::ordinal(to.index()), src.data(),
                                                    cuda::ordinal(from.index()), kBytes, from.compute()),
                                "copying from one GPU to another");
                        });
  std::vector<uint32_t> arrived(kBytes / sizeof(uint32_t));
  to.copy_to_host(arrived.data(), dst.data(), kBytes);
  if (arrived != pattern()) speed.damaged.push_back(to.index());
}

GpuSpeed speed_of(CudaContext& context, const Contexts& all) {
  context.attach();
  auto deadline = std::make_unique<ExitDeadline>();
  limit_copies(context, "from, to and within the memory of this GPU", *deadline);
  const Buffer device = context.allocate(kBytes), other = context.allocate(kBytes),
               host = context.allocate_host(kBytes);
  const auto time_copy = [&](const Buffer& dst, const Buffer& src) {
    return time_of(context, [&] { context.enqueue_copy(dst.data(), src.data(), kBytes); });
  };
  std::memcpy(host.data(), pattern().data(), kBytes);
  GpuSpeed speed;
  speed.to_device = kBytes / time_copy(device, host);
  speed.to_host = kBytes / time_copy(host, device);
  speed.within = 2 * kBytes / time_copy(other, device);
  deadline.reset();
  for (const auto& peer : all) {
    speed.to_gpu.push_back(0);
    if (peer && peer.get() != &context) measure_between(context, device, *peer, speed);
  }
  context.detach();
  return speed;
}

}  // namespace

std::vector<GpuSpeed> measure_gpus() {
  Contexts contexts(static_cast<size_t>(gpu_presence().count));
  for (size_t index = 0; index < contexts.size(); ++index) {
    try {
      const DeviceId device{DeviceId::Kind::gpu, static_cast<int>(index)};
      contexts[index] = std::make_unique<CudaContext>(device, false);
    } catch (const Error&) {  // this GPU cannot be used; list_gpus() reports the reason
    }
  }
  std::vector<GpuSpeed> speeds;
  for (const auto& context : contexts) speeds.push_back(context ? speed_of(*context, contexts) : GpuSpeed{});
  return speeds;
}

}  // namespace dtrain
