// NVIDIA's management library (NVML), a part of the driver. The library is optional and loaded at run time.
// NVML numbers all GPUs of the machine and ignores CUDA_VISIBLE_DEVICES. Therefore a GPU is identified by its
// PCI address, which is the same in NVML and CUDA.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "device/load.h"

namespace dtrain {

class Nvml {
 public:
  /// NVML's handle of a GPU. Queries of a null handle return no value.
  using Gpu = void*;
  struct Memory {
    uint64_t total = 0, free = 0, used = 0;  // bytes
  };

  Nvml();
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  /// Returns the reason why NVML lists no GPUs, or "" if it lists GPUs.
  const std::string& reason() const { return reason_; }
  /// Returns the driver's version, such as "580.95.05"; "" if unknown.
  std::string driver_version() const;

  unsigned count() const { return count_; }
  Gpu gpu(unsigned index) const;
  /// Returns the GPU at the address `pci`, in the format of pci_id().
  Gpu gpu_at(const std::string& pci) const;
  /// Returns the GPU with the identifier `uuid`: "GPU-00112233-..." or "MIG-00112233-...".
  Gpu gpu_called(const std::string& uuid) const;

  // These functions return nullopt or "" for values that NVML does not report.
  std::string name(Gpu gpu) const;
  std::string pci_id(Gpu gpu) const;
  /// Returns true if the GPU is split into MIG instances, each of which CUDA sees as a GPU.
  bool is_split(Gpu gpu) const;
  std::optional<Memory> memory(Gpu gpu) const;
  std::optional<int> utilisation(Gpu gpu) const;     // in percent, averaged over about the last second
  std::optional<int> temperature(Gpu gpu) const;     // degrees Celsius
  std::optional<double> power(Gpu gpu) const;        // watts
  std::optional<double> power_limit(Gpu gpu) const;  // watts
  std::optional<int> nvlinks(Gpu gpu) const;         // number of active links
  std::vector<GpuProcess> processes(Gpu gpu) const;

 private:
  template <class... Arguments>
  bool call(const char* function, Arguments... arguments) const;

  void* library_ = nullptr;  // null if the library could not be opened and initialized
  std::string reason_;
  unsigned count_ = 0;
};

/// Formats a PCI address as Linux, nvidia-smi and CUDA do, in lower case: "0000:41:00.0".
std::string pci_id(unsigned domain, unsigned bus, unsigned device);
/// Converts a PCI address to the format of pci_id(). The given address may have a different number of digits
/// or upper-case digits ("00000000:C1:00.0"). Returns other text unchanged.
std::string normalized_pci_id(const std::string& address);

}  // namespace dtrain
