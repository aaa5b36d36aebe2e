#include "device/cuda/nvml.h"

#include <dlfcn.h>

namespace dtrain::cuda {
namespace {

// NVML's own declarations, as far as they are used: its header comes with the toolkit only in part of the
// ways to install it. Every function answers 0 for success.
using Gpu = void*;
using Plain = int (*)();
using DriverVersion = int (*)(char* text, unsigned size);
using GpuByPci = int (*)(const char* pci, Gpu* gpu);
struct Utilisation {
  unsigned gpu, memory;
};
using UtilisationOf = int (*)(Gpu gpu, Utilisation* utilisation);
using TemperatureOf = int (*)(Gpu gpu, int sensor, unsigned* degrees);
using NvlinkState = int (*)(Gpu gpu, unsigned link, int* active);
constexpr int kChip = 0;         // the sensor
constexpr unsigned kLinks = 18;  // NVML_NVLINK_MAX_LINKS

}  // namespace

template <class Function>
Function Nvml::find(const char* name) const {
  return library_ ? reinterpret_cast<Function>(dlsym(library_, name)) : nullptr;
}

Nvml::Nvml() : library_(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {
  const auto start = find<Plain>("nvmlInit_v2");
  if (start && start() == 0) return;
  if (library_) dlclose(library_);
  library_ = nullptr;
}

Nvml::~Nvml() {
  if (const auto stop = find<Plain>("nvmlShutdown")) stop();
  if (library_) dlclose(library_);
}

std::string Nvml::driver_version() const {
  char text[96] = "";
  const auto ask = find<DriverVersion>("nvmlSystemGetDriverVersion");
  return ask && ask(text, sizeof text) == 0 ? text : "";
}

void* Nvml::gpu(const std::string& pci) const {
  Gpu gpu = nullptr;
  const auto ask = find<GpuByPci>("nvmlDeviceGetHandleByPciBusId_v2");
  return ask && ask(pci.c_str(), &gpu) == 0 ? gpu : nullptr;
}

std::optional<int> Nvml::utilisation(const std::string& pci) const {
  Utilisation found{};
  const auto ask = find<UtilisationOf>("nvmlDeviceGetUtilizationRates");
  const Gpu of = gpu(pci);
  if (!ask || !of || ask(of, &found) != 0) return std::nullopt;
  return static_cast<int>(found.gpu);
}

std::optional<int> Nvml::temperature(const std::string& pci) const {
  unsigned found = 0;
  const auto ask = find<TemperatureOf>("nvmlDeviceGetTemperature");
  const Gpu of = gpu(pci);
  if (!ask || !of || ask(of, kChip, &found) != 0) return std::nullopt;
  return static_cast<int>(found);
}

std::optional<int> Nvml::nvlinks(const std::string& pci) const {
  const auto ask = find<NvlinkState>("nvmlDeviceGetNvLinkState");
  const Gpu of = gpu(pci);
  if (!ask || !of) return std::nullopt;
  int up = 0;
  bool known = false;
  for (unsigned link = 0; link < kLinks; ++link) {
    int active = 0;
    if (ask(of, link, &active) != 0) continue;  // no such link
    known = true;
    up += active != 0;
  }
  return known ? std::optional(up) : std::nullopt;
}

}  // namespace dtrain::cuda
