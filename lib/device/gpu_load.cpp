#include <array>
#include <dlfcn.h>
#include <fstream>
#include <vector>

#include <fmt/format.h>

#include "device/load.h"

namespace dtrain {

namespace {

// NVML's own declarations, as far as they are used: a machine that has a driver need not have its header.
// Every function answers 0 for success.
struct Memory {
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
using Gpu = void*;
constexpr int kChip = 0;                        // the sensor
constexpr unsigned long long kUnknown = ~0ULL;  // where a container hides the memory of a process

std::string name_of_process(unsigned pid) {
  std::string name;
  std::ifstream file(fmt::format("/proc/{}/comm", pid));
  std::getline(file, name);
  return name;
}

}  // namespace

template <class... Arguments>
bool GpuWatch::call(const char* function, Arguments... arguments) const {
  const auto found = library_ ? reinterpret_cast<int (*)(Arguments...)>(dlsym(library_, function)) : nullptr;
  return found && found(arguments...) == 0;
}

GpuWatch::GpuWatch() : library_(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {
  if (!library_) {
    reason_ = "NVIDIA's driver is not installed here (libnvidia-ml.so.1)";
  } else if (!call("nvmlInit_v2")) {
    reason_ = "NVIDIA's driver is installed, but does not answer";
    dlclose(library_);
    library_ = nullptr;
  } else if (!call("nvmlDeviceGetCount_v2", &count_) || count_ == 0) {
    reason_ = "NVIDIA's driver knows of none";
  }
}

GpuWatch::~GpuWatch() {
  if (!library_) return;
  call("nvmlShutdown");
  dlclose(library_);
}

std::vector<GpuLoad> GpuWatch::look() const {
  std::vector<GpuLoad> gpus;
  for (unsigned index = 0; index < count_; ++index) {
    Gpu gpu = nullptr;
    if (!call("nvmlDeviceGetHandleByIndex_v2", index, &gpu)) continue;
    GpuLoad load;
    load.index = static_cast<int>(index);
    std::array<char, 96> name{};
    if (call("nvmlDeviceGetName", gpu, name.data(), static_cast<unsigned>(name.size() - 1)))
      load.name = name.data();
    Memory memory;
    if (call("nvmlDeviceGetMemoryInfo", gpu, &memory)) {
      load.memory_total = memory.total;
      load.memory_used = memory.used;
    }
    Utilisation utilisation;
    if (call("nvmlDeviceGetUtilizationRates", gpu, &utilisation))
      load.utilisation = static_cast<int>(utilisation.gpu);
    unsigned degrees = 0, milliwatts = 0;
    if (call("nvmlDeviceGetTemperature", gpu, kChip, &degrees)) load.temperature = static_cast<int>(degrees);
    if (call("nvmlDeviceGetPowerUsage", gpu, &milliwatts)) load.power = milliwatts / 1e3;
    if (call("nvmlDeviceGetEnforcedPowerLimit", gpu, &milliwatts)) load.power_limit = milliwatts / 1e3;
    // The first call says how many there are, and fails for want of room; some may come until the second.
    unsigned count = 0;
    call("nvmlDeviceGetComputeRunningProcesses_v3", gpu, &count, static_cast<Process*>(nullptr));
    std::vector<Process> processes(count + 64);
    count = static_cast<unsigned>(processes.size());
    if (!call("nvmlDeviceGetComputeRunningProcesses_v3", gpu, &count, processes.data())) count = 0;
    for (unsigned i = 0; i < count; ++i) {
      GpuProcess process{static_cast<int>(processes[i].pid), name_of_process(processes[i].pid), {}};
      if (processes[i].memory != kUnknown) process.memory = processes[i].memory;
      load.processes.push_back(std::move(process));
    }
    gpus.push_back(std::move(load));
  }
  return gpus;
}

}  // namespace dtrain
