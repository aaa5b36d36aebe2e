/* A fake of NVIDIA's management library, libnvidia-ml.so.1, for a machine with three GPUs: the two GPUs of
   tests/emulation, in the reverse of CUDA's order, and a GPU that CUDA does not see. The program finds this library
   because it is already loaded under that name. The file is valid C and C++. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* True if the GPU on bus 0x40 is split into instances, of which CUDA sees one; set by tests. */
bool fake_nvml_is_split = false;

typedef struct {
  unsigned bus;
  unsigned long long total, free;
} FakeGpu;
static FakeGpu gpus[] = {{0x41, 1 << 30, 700 << 20}, {0x40, 1 << 30, 600 << 20}, {0xc1, 1 << 30, 500 << 20}};
static FakeGpu instance = {0x40, 100 << 20, 90 << 20};
static const char* const kInstance = "MIG-10101010-1010-1010-1010-101010101010";
enum { kNotFound = 6 };

typedef struct {
  char legacy_id[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char id[32];
} PciInfo;
typedef struct {
  unsigned long long total, free, used;
} MemoryInfo;

int nvmlInit_v2(void) {
  return 0;
}
int nvmlShutdown(void) {
  return 0;
}
int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  snprintf(text, size, "580.1");
  return 0;
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 3;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, FakeGpu** gpu) {
  if (index >= 3) return kNotFound;
  *gpu = &gpus[index];
  return 0;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char* text, FakeGpu** gpu) {
  unsigned domain = 0, bus = 0, device = 0;
  if (sscanf(text, "%x:%x:%x", &domain, &bus, &device) != 3) return kNotFound;
  for (int i = 0; i < 3; ++i) {
    if (gpus[i].bus != bus || domain != 0 || device != 0) continue;
    *gpu = &gpus[i];
    return 0;
  }
  return kNotFound;
}
int nvmlDeviceGetHandleByUUID(const char* uuid, FakeGpu** gpu) {
  if (!fake_nvml_is_split || strcmp(uuid, kInstance) != 0) return kNotFound;
  *gpu = &instance;
  return 0;
}
int nvmlDeviceGetMigMode(const FakeGpu* gpu, unsigned* current, unsigned* pending) {
  *current = *pending = fake_nvml_is_split && gpu->bus == 0x40;
  return 0;
}
/* The name contains the values of this process's environment variables for CUDA and NCCL. */
int nvmlDeviceGetName(const FakeGpu* gpu, char* text, unsigned size) {
  const char *order = getenv("CUDA_DEVICE_ORDER"), *disable = getenv("NCCL_P2P_DISABLE");
  snprintf(text, size, "fake GPU %x, %s%s%s", gpu->bus, order ? order : "FASTEST_FIRST",
           disable ? ", NCCL_P2P_DISABLE=" : "", disable ? disable : "");
  return 0;
}
int nvmlDeviceGetPciInfo_v3(const FakeGpu* gpu, PciInfo* info) {
  memset(info, 0, sizeof *info);
  info->bus = gpu->bus;
  snprintf(info->id, sizeof info->id, "00000000:%02X:00.0", info->bus);
  return 0;
}
int nvmlDeviceGetMemoryInfo(const FakeGpu* gpu, MemoryInfo* info) {
  info->total = gpu->total;
  info->free = gpu->free;
  info->used = gpu->total - gpu->free;
  return 0;
}

#ifdef __cplusplus
}
#endif
