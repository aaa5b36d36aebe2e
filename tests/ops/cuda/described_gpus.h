// Descriptions of GPUs. With such a description, cuDNN finds the plans for a GPU on a machine without this
// GPU.
#pragma once

#include <array>
#include <cudnn.h>
#include <string>

#include "base/error.h"

namespace dtrain::test {

/// A GPU that is described by its properties.
struct Gpu {
  std::string name;
  bool always_deterministic;  // tests only deterministic plans, because testing both kinds takes long
  size_t workspace_bytes;     // bytes of workspace that the context of this GPU has
  int capability;             // compute capability; 90 is 9.0
  const char* properties;     // the cudaDeviceProp of this GPU in cuDNN's serialized form
};

inline const std::array<Gpu, 2> kGpus = {
    Gpu{"H200", false, size_t{64} << 20, 90, R"({
      "deviceName": "NVIDIA H200", "deviceVer": 900, "driverVer": 13000, "cudaDeviceId": 0, "pciDeviceId": 0,
      "isTccDriver": 0, "supportCoopLaunch": 1, "warpSize": 32, "multiProcessorCount": 132,
      "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64], "maxCtasPerSM": 32,
      "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "regsPerBlock": 65536, "maxRegistersPerSM": 65536,
      "maxSharedMemoryPerBlock": 49152, "maxSharedMemoryPerBlockOptin": 232448,
      "reservedSharedMemoryPerBlock": 1024, "totalGlobalMem": 150000000000, "l2CacheSize": 62914560,
      "smClockRateKHz": 1980000, "memClockRateKHz": 3201000})"},
    Gpu{"A100", true, size_t{32} << 20, 80, R"({
      "deviceName": "NVIDIA A100-SXM4-40GB", "deviceVer": 800, "driverVer": 13000, "cudaDeviceId": 0,
      "pciDeviceId": 0, "isTccDriver": 0, "supportCoopLaunch": 1, "warpSize": 32, "multiProcessorCount": 108,
      "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64], "maxCtasPerSM": 32,
      "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "regsPerBlock": 65536, "maxRegistersPerSM": 65536,
      "maxSharedMemoryPerBlock": 49152, "maxSharedMemoryPerBlockOptin": 166912,
      "reservedSharedMemoryPerBlock": 1024, "totalGlobalMem": 42000000000, "l2CacheSize": 41943040,
      "smClockRateKHz": 1410000, "memClockRateKHz": 1215000})"},
};

/// Returns the reason why cuDNN cannot be used here; "" if it can be used.
inline std::string why_not() {
  try {
    return cudnnGetVersion() < 90800 ? "cuDNN before 9.8 has plans only where there is a GPU" : "";
  } catch (const Error& missing) {
    return missing.what();
  }
}

}  // namespace dtrain::test
