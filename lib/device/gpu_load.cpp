#include "device/gpu_info.h"
#include "device/load.h"
#include "device/nvml.h"

namespace dtrain {

GpuWatch::GpuWatch() : nvml_(std::make_unique<Nvml>()), indices_(gpu_indices()) {}
GpuWatch::~GpuWatch() = default;

const std::string& GpuWatch::reason() const {
  return nvml_->reason();
}

std::vector<GpuLoad> GpuWatch::look() const {
  std::vector<GpuLoad> gpus;
  for (unsigned number = 0; number < nvml_->count(); ++number) {
    const Nvml::Gpu gpu = nvml_->gpu(number);
    if (!gpu) continue;
    GpuLoad load;
    load.pci = nvml_->pci_id(gpu);
    if (const auto index = indices_.find(load.pci); index != indices_.end()) load.index = index->second;
    load.name = nvml_->name(gpu);
    const Nvml::Memory memory = nvml_->memory(gpu).value_or(Nvml::Memory{});
    load.memory_total = memory.total;
    load.memory_used = memory.used;
    load.utilisation = nvml_->utilisation(gpu);
    load.temperature = nvml_->temperature(gpu);
    load.power = nvml_->power(gpu);
    load.power_limit = nvml_->power_limit(gpu);
    load.processes = nvml_->processes(gpu);
    gpus.push_back(std::move(load));
  }
  return gpus;
}

}  // namespace dtrain
