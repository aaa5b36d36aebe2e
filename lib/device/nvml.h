// NVIDIA's management library (NVML), which comes with the driver: opened if it is there, never required. It
// numbers GPUs by itself, whatever CUDA_VISIBLE_DEVICES says; a PCI address names the same GPU to NVML and
// CUDA.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "device/load.h"

namespace dtrain {

class Nvml {
 public:
  /// One of NVML's GPUs; null is none, of which nothing is known.
  using Gpu = void*;
  struct Memory {
    uint64_t total = 0, free = 0, used = 0;  // bytes
  };

  Nvml();
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  /// Why there are no GPUs to ask about; "" if there are.
  const std::string& reason() const { return reason_; }
  /// "580.95.05"; "" if unknown.
  std::string driver_version() const;

  unsigned count() const { return count_; }
  Gpu gpu(unsigned index) const;
  /// `pci`: as pci_id() writes it.
  Gpu gpu_at(const std::string& pci) const;
  /// `uuid`: "GPU-00112233-..." or "MIG-00112233-...".
  Gpu gpu_called(const std::string& uuid) const;

  // What NVML does not tell is nothing, or "".
  std::string name(Gpu gpu) const;
  std::string pci_id(Gpu gpu) const;
  /// Whether the GPU is split into instances (MIG), each of which is a GPU to CUDA.
  bool is_split(Gpu gpu) const;
  std::optional<Memory> memory(Gpu gpu) const;
  std::optional<int> utilisation(Gpu gpu) const;     // per cent of the last second or so
  std::optional<int> temperature(Gpu gpu) const;     // degrees Celsius
  std::optional<double> power(Gpu gpu) const;        // watts
  std::optional<double> power_limit(Gpu gpu) const;  // watts
  std::optional<int> nvlinks(Gpu gpu) const;         // that are up
  std::vector<GpuProcess> processes(Gpu gpu) const;

 private:
  template <class... Arguments>
  bool call(const char* function, Arguments... arguments) const;

  void* library_ = nullptr;  // null if it could not be opened and started
  std::string reason_;
  unsigned count_ = 0;
};

/// "0000:41:00.0", as Linux, nvidia-smi and CUDA name a device of the PCI bus, in small letters.
std::string pci_id(unsigned domain, unsigned bus, unsigned device);
/// The same of an address with another number of digits or in capitals ("00000000:C1:00.0"); other text as it
/// is.
std::string normalized_pci_id(const std::string& address);

}  // namespace dtrain
