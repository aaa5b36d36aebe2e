// NVIDIA's management library, which comes with the driver: opened where it is there, never required.
#pragma once

#include <optional>
#include <string>

namespace dtrain::cuda {

class Nvml {
 public:
  Nvml();
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  /// "580.95.05"; empty where the library is not there.
  std::string driver_version() const;

  // About the GPU at this PCI address ("0000:19:00.0"). Nothing where the library is not there or does not
  // know.
  std::optional<int> utilisation(const std::string& pci) const;
  std::optional<int> temperature(const std::string& pci) const;
  std::optional<int> nvlinks(const std::string& pci) const;

 private:
  template <class Function>
  Function find(const char* name) const;
  void* gpu(const std::string& pci) const;

  void* library_ = nullptr;  ///< null where it could not be opened and started
};

}  // namespace dtrain::cuda
