// How fast memory is copied.
#include <algorithm>
#include <functional>

#include "device/cuda/check.h"
#include "device/cuda/context.h"
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
  check(cudaEventCreate(&event), "making an event");
  return cuda::EventHandle(event);
}

/// The best of several tries, after one that does not count, in seconds.
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

double speed_between(CudaContext& from, const Buffer& src, CudaContext& to) {
  const Buffer dst = to.allocate(kBytes);
  enable_peer_access(from, to);
  from.attach();
  return kBytes / time_of(from, [&] {
           check(
               cudaMemcpyPeerAsync(dst.data(), to.index(), src.data(), from.index(), kBytes, from.compute()),
               "copying from one GPU to another");
         });
}

GpuSpeed speed_of(CudaContext& context, const std::vector<std::unique_ptr<CudaContext>>& all) {
  context.attach();
  const Buffer device = context.allocate(kBytes), other = context.allocate(kBytes),
               host = context.allocate_host(kBytes);
  const auto time_copy = [&](const Buffer& dst, const Buffer& src) {
    return time_of(context, [&] { context.enqueue_copy(dst.data(), src.data(), kBytes); });
  };
  GpuSpeed speed;
  speed.to_device = kBytes / time_copy(device, host);
  speed.to_host = kBytes / time_copy(host, device);
  speed.within = 2 * kBytes / time_copy(other, device);
  for (const auto& peer : all)
    speed.to_gpu.push_back(peer.get() == &context ? 0 : speed_between(context, device, *peer));
  return speed;
}

}  // namespace

std::vector<GpuSpeed> measure_gpus() {
  std::vector<std::unique_ptr<CudaContext>> contexts;
  for (int index = 0; index < gpu_presence().count; ++index)
    contexts.push_back(std::make_unique<CudaContext>(DeviceId{DeviceId::Kind::gpu, index}, false));
  std::vector<GpuSpeed> speeds;
  for (const auto& context : contexts) speeds.push_back(speed_of(*context, contexts));
  return speeds;
}

}  // namespace dtrain
