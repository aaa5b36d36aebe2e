// Emulates the CUDA runtime's devices: properties, contexts and peer access.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "emulation/queue.h"

namespace dtrain::emulation {

namespace {

std::set<int> made_contexts;
std::set<int> blocking_devices;
std::set<std::pair<int, int>> enabled_peers;  // (device, accessible device) pairs

bool exists(int device) {
  return device >= 0 && device < machine().devices;
}

int capability_of(int device) {
  const int own = oddity_of(device).capability;
  return own > 0 ? own : machine().capability;
}

int driver_version() {
  return machine().driver > 0 ? machine().driver : CUDART_VERSION;
}

bool can_reach(int device, int peer) {
  return device != peer && machine().peers != PeerAccess::absent &&
         (machine().peers != PeerAccess::one_way || device < peer);
}

struct Attribute {
  cudaDeviceAttr name;
  int value;
};

/// Returns whether copies between these devices (-1: the host) use peer access.
bool uses_peer_access(int to, int from) {
  return to >= 0 && from >= 0 && to != from &&
         (enabled_peers.contains({to, from}) || enabled_peers.contains({from, to}));
}

}  // namespace

const Oddity& oddity_of(int device) {
  static const Oddity none;
  const auto found = machine().oddities.find(device);
  return found == machine().oddities.end() ? none : found->second;
}

cudaError_t make_context(int device) {
  if (const int status = oddity_of(device).set_device) return static_cast<cudaError_t>(status);
  made_contexts.insert(device);
  return cudaSuccess;
}

/// Assumes a program compiled for 80-real, 90-real and 90-virtual.
cudaError_t kernel_status(int device) {
  const int capability = capability_of(device);
  if (capability < 80) return cudaErrorNoKernelImageForDevice;
  if (capability >= 100 && driver_version() < CUDART_VERSION) return cudaErrorUnsupportedPtxVersion;
  return cudaSuccess;
}

bool peer_copy_is_corrupted(int to, int from) {
  return machine().peers == PeerAccess::corrupting && uses_peer_access(to, from);
}

bool peer_copy_hangs(int to, int from) {
  return machine().peers == PeerAccess::hanging && uses_peer_access(to, from);
}

void stop_devices() {
  made_contexts.clear();
  blocking_devices.clear();
  enabled_peers.clear();
}

std::set<int> sleepers() {
  const auto lock = lock_machine();
  return blocking_devices;
}

std::set<int> contexts() {
  const auto lock = lock_machine();
  return made_contexts;
}

}  // namespace dtrain::emulation

using namespace dtrain::emulation;

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  const auto lock = lock_machine();
  *count = 0;
  if (const int status = machine().count_status) return answer(static_cast<cudaError_t>(status));
  *count = machine().devices;
  return answer(*count == 0 ? cudaErrorNoDevice : cudaSuccess);
}

cudaError_t cudaDriverGetVersion(int* version) {
  const auto lock = lock_machine();
  *version = driver_version();
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr name, int device) {
  const auto lock = lock_machine();
  if (!exists(device)) return answer(cudaErrorInvalidDevice);
  const Attribute attributes[] = {{cudaDevAttrMultiProcessorCount, machine().multiprocessors},
                                  {cudaDevAttrComputeCapabilityMajor, capability_of(device) / 10},
                                  {cudaDevAttrComputeCapabilityMinor, capability_of(device) % 10},
                                  {cudaDevAttrMaxThreadsPerBlock, 1024},
                                  {cudaDevAttrMaxThreadsPerMultiProcessor, 2048},
                                  {cudaDevAttrWarpSize, 32},
                                  {cudaDevAttrL2CacheSize, 50 << 20},
                                  {cudaDevAttrMaxSharedMemoryPerBlock, 48 << 10},
                                  {cudaDevAttrConcurrentKernels, 1},
                                  {cudaDevAttrPciBusId, 0x40 + device},
                                  {cudaDevAttrPciDeviceId, 0},
                                  {cudaDevAttrPciDomainId, 0},
                                  {cudaDevAttrComputeMode, cudaComputeModeDefault}};
  for (const Attribute& attribute : attributes) {
    if (attribute.name == name) {
      *value = attribute.value;
      return cudaSuccess;
    }
  }
  return answer(cudaErrorInvalidValue);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  const auto lock = lock_machine();
  if (!exists(device)) return answer(cudaErrorInvalidDevice);
  *properties = cudaDeviceProp{};
  std::snprintf(properties->name, sizeof properties->name, "Emulated GPU");
  std::memset(&properties->uuid, 0x10 + device, sizeof properties->uuid);
  properties->totalGlobalMem = machine().memory_bytes;
  properties->major = capability_of(device) / 10;
  properties->minor = capability_of(device) % 10;
  properties->multiProcessorCount = machine().multiprocessors;
  properties->warpSize = 32;
  properties->maxThreadsPerBlock = 1024;
  properties->pciBusID = 0x40 + device;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  const auto lock = lock_machine();
  if (!exists(device)) return answer(cudaErrorInvalidDevice);
  std::snprintf(text, static_cast<size_t>(length), "0000:%02X:00.0", 0x40 + device);
  return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void*) {
  const auto lock = lock_machine();
  *attributes = {};
  if (const cudaError_t status = make_context(current_device()); status != cudaSuccess) return answer(status);
  return answer(kernel_status(current_device()));
}

cudaError_t cudaSetDeviceFlags(unsigned flags) {
  const auto lock = lock_machine();
  if (flags == cudaDeviceScheduleBlockingSync) blocking_devices.insert(current_device());
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  const auto lock = lock_machine();
  *can = can_reach(device, peer);
  return answer(exists(device) && exists(peer) ? cudaSuccess : cudaErrorInvalidDevice);
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  const auto lock = lock_machine();
  if (flags != 0) return answer(cudaErrorInvalidValue);
  if (!exists(peer) || !can_reach(current_device(), peer)) return answer(cudaErrorInvalidDevice);
  if (machine().peers == PeerAccess::refused) return answer(cudaErrorTooManyPeers);
  return answer(enabled_peers.emplace(current_device(), peer).second ? cudaSuccess
                                                                     : cudaErrorPeerAccessAlreadyEnabled);
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  const auto lock = lock_machine();
  return answer(enabled_peers.erase({current_device(), peer}) > 0 ? cudaSuccess
                                                                  : cudaErrorPeerAccessNotEnabled);
}

}  // extern "C"
