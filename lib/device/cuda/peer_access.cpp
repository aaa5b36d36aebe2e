#include "device/peer_access.h"

#include <cuda_runtime.h>

#include "device/cuda/check.h"
#include "device/cuda/current.h"

namespace dtrain {

namespace {

void let_reach(int index, int peer) {
  const cuda::OnDevice on(index);
  int can = 0;
  cuda::check(cudaDeviceCanAccessPeer(&can, index, peer), "asking which GPUs reach each other");
  if (!can) return;
  const cudaError_t status = cudaDeviceEnablePeerAccess(peer, 0);
  if (status != cudaErrorPeerAccessAlreadyEnabled) cuda::check(status, "letting one GPU reach another");
  cudaGetLastError();
}

}  // namespace

void enable_peer_access(const Context& one, const Context& other) {
  const int a = one.device().index, b = other.device().index;
  if (a == b) return;
  let_reach(a, b);
  let_reach(b, a);
}

}  // namespace dtrain
