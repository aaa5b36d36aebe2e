#include "runs/utilisation.h"

#include <algorithm>
#include <optional>
#include <unistd.h>

#include <fmt/format.h>

namespace dtrain {

namespace {

/// Returns the mean utilization of this process's GPUs in percent, or nullopt if the driver does not report
/// which GPUs this process uses, as in a container.
std::optional<double> mean_of_own(const GpuWatch& watch) {
  double sum = 0;
  int count = 0;
  for (const GpuLoad& gpu : watch.look()) {
    const auto is_own = [](const GpuProcess& process) { return process.pid == getpid(); };
    if (!gpu.utilisation || std::none_of(gpu.processes.begin(), gpu.processes.end(), is_own)) continue;
    sum += *gpu.utilisation;
    ++count;
  }
  if (count == 0) return std::nullopt;
  return sum / count;
}

/// Returns the mean utilization of the cores in percent.
double mean_of(const CpuLoad& load) {
  double sum = 0;
  for (const auto& [core, busy] : load.cores) sum += busy;
  return load.cores.empty() ? 0 : 100 * sum / static_cast<double>(load.cores.size());
}

}  // namespace

Utilisation::Utilisation(bool gpus) : gpus_(gpus ? std::make_unique<GpuWatch>() : nullptr) {
  cpu_.look();
  looked_ = Clock::now();
}

const std::string& Utilisation::text() {
  constexpr std::chrono::seconds kBetween(1);
  if (Clock::now() - looked_ < kBetween) return text_;
  looked_ = Clock::now();
  if (!gpus_) {
    text_ = fmt::format("cpu {:.0f} %", mean_of(cpu_.look()));
  } else {
    const auto mean = mean_of_own(*gpus_);
    text_ = mean ? fmt::format("gpu {:.0f} %", *mean) : "";
  }
  return text_;
}

}  // namespace dtrain
