#include "device/nvml.h"

#include <array>
#include <cstdio>
#include <dlfcn.h>
#include <fstream>

#include <fmt/format.h>

namespace dtrain {

namespace {

// Declarations of the NVML types and functions that this file uses. They are copied here because a machine
// with a driver may lack NVML's header. Every function returns 0 on success.
struct MemoryInfo {
  unsigned long long total = 0, free = 0, used = 0;
};
struct Utilisation {
  unsigned gpu = 0, memory = 0;
};
struct Process {
  unsigned pid = 0;
  unsigned long long memory = 0;
  unsigned gpu_instance = 0, compute_instance = 0;
};
struct PciInfo {
  char legacy_id[16] = "";
  unsigned domain = 0, bus = 0, device = 0, device_id = 0, subsystem_id = 0;
  char id[32] = "";
};
constexpr int kChip = 0;             // temperature sensor
constexpr unsigned kLinks = 18;      // NVML_NVLINK_MAX_LINKS
constexpr unsigned kMigEnabled = 1;  // NVML_DEVICE_MIG_ENABLE
// NVML's value if a container hides the memory use of a process.
constexpr unsigned long long kUnknown = ~0ULL;

std::string name_of_process(unsigned pid) {
  std::string name;
  std::ifstream file(fmt::format("/proc/{}/comm", pid));
  std::getline(file, name);
  return name;
}

}  // namespace

template <class... Arguments>
bool Nvml::call(const char* function, Arguments... arguments) const {
  const auto found = library_ ? reinterpret_cast<int (*)(Arguments...)>(dlsym(library_, function)) : nullptr;
  return found && found(arguments...) == 0;
}

Nvml::Nvml() : library_(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {
  if (!library_) {
    reason_ = "libnvidia-ml.so.1 of the NVIDIA driver was not found";
  } else if (!call("nvmlInit_v2")) {
    reason_ = "the NVIDIA driver is installed, but does not respond";
    dlclose(library_);
    library_ = nullptr;
  } else if (!call("nvmlDeviceGetCount_v2", &count_) || count_ == 0) {
    reason_ = "the NVIDIA driver reports no GPUs";
  }
}

Nvml::~Nvml() {
  if (!library_) return;
  call("nvmlShutdown");
  dlclose(library_);
}

std::string Nvml::driver_version() const {
  std::array<char, 96> text{};
  return call("nvmlSystemGetDriverVersion", text.data(), static_cast<unsigned>(text.size() - 1)) ? text.data()
                                                                                                 : "";
}

Nvml::Gpu Nvml::gpu(unsigned index) const {
  Gpu found = nullptr;
  return call("nvmlDeviceGetHandleByIndex_v2", index, &found) ? found : nullptr;
}

Nvml::Gpu Nvml::gpu_at(const std::string& pci) const {
  Gpu found = nullptr;
  return call("nvmlDeviceGetHandleByPciBusId_v2", pci.c_str(), &found) ? found : nullptr;
}

Nvml::Gpu Nvml::gpu_called(const std::string& uuid) const {
  Gpu found = nullptr;
  return call("nvmlDeviceGetHandleByUUID", uuid.c_str(), &found) ? found : nullptr;
}

std::string Nvml::name(Gpu gpu) const {
  std::array<char, 96> text{};
  return gpu && call("nvmlDeviceGetName", gpu, text.data(), static_cast<unsigned>(text.size() - 1))
             ? text.data()
             : "";
}

std::string Nvml::pci_id(Gpu gpu) const {
  PciInfo info;
  if (!gpu || !call("nvmlDeviceGetPciInfo_v3", gpu, &info)) return "";
  return dtrain::pci_id(info.domain, info.bus, info.device);
}

bool Nvml::is_split(Gpu gpu) const {
  unsigned current = 0, pending = 0;
  return gpu && call("nvmlDeviceGetMigMode", gpu, &current, &pending) && current == kMigEnabled;
}

std::optional<Nvml::Memory> Nvml::memory(Gpu gpu) const {
  MemoryInfo info;
  if (!gpu || !call("nvmlDeviceGetMemoryInfo", gpu, &info)) return std::nullopt;
  return Memory{info.total, info.free, info.used};
}

std::optional<int> Nvml::utilisation(Gpu gpu) const {
  Utilisation found;
  if (!gpu || !call("nvmlDeviceGetUtilizationRates", gpu, &found)) return std::nullopt;
  return static_cast<int>(found.gpu);
}

std::optional<int> Nvml::temperature(Gpu gpu) const {
  unsigned degrees = 0;
  if (!gpu || !call("nvmlDeviceGetTemperature", gpu, kChip, &degrees)) return std::nullopt;
  return static_cast<int>(degrees);
}

std::optional<double> Nvml::power(Gpu gpu) const {
  unsigned milliwatts = 0;
  if (!gpu || !call("nvmlDeviceGetPowerUsage", gpu, &milliwatts)) return std::nullopt;
  return milliwatts / 1e3;
}

std::optional<double> Nvml::power_limit(Gpu gpu) const {
  unsigned milliwatts = 0;
  if (!gpu || !call("nvmlDeviceGetEnforcedPowerLimit", gpu, &milliwatts)) return std::nullopt;
  return milliwatts / 1e3;
}

std::optional<int> Nvml::nvlinks(Gpu gpu) const {
  std::optional<int> up;
  for (unsigned link = 0; gpu && link < kLinks; ++link) {
    int active = 0;
    if (call("nvmlDeviceGetNvLinkState", gpu, link, &active)) up = up.value_or(0) + (active != 0);
  }
  return up;
}

std::vector<GpuProcess> Nvml::processes(Gpu gpu) const {
  if (!gpu) return {};
  // The first call fails because there is no room for the result, but it returns the number of processes. The
  // second call has some extra room, because new processes may have started.
  unsigned count = 0;
  call("nvmlDeviceGetComputeRunningProcesses_v3", gpu, &count, static_cast<Process*>(nullptr));
  std::vector<Process> found(count + 64);
  count = static_cast<unsigned>(found.size());
  if (!call("nvmlDeviceGetComputeRunningProcesses_v3", gpu, &count, found.data())) count = 0;
  std::vector<GpuProcess> processes;
  for (unsigned i = 0; i < count; ++i) {
    GpuProcess process{static_cast<int>(found[i].pid), name_of_process(found[i].pid), {}};
    if (found[i].memory != kUnknown) process.memory = found[i].memory;
    processes.push_back(std::move(process));
  }
  return processes;
}

std::string pci_id(unsigned domain, unsigned bus, unsigned device) {
  return fmt::format("{:04x}:{:02x}:{:02x}.0", domain, bus, device);
}

std::string normalized_pci_id(const std::string& address) {
  unsigned domain = 0, bus = 0, device = 0;
  if (std::sscanf(address.c_str(), "%x:%x:%x", &domain, &bus, &device) != 3) return address;
  return pci_id(domain, bus, device);
}

}  // namespace dtrain
