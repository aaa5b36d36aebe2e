#include "runs/start.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "print/model_table.h"

namespace dtrain {

namespace {

/// Returns e.g. "mirrored, 3 replicas on cpu:0, cpu:1 (AMD EPYC 9B45, 2 cores)".
std::string describe_devices(const RunPlan& plan) {
  const Placement& placement = plan.placement;
  std::vector<std::string> names;
  bool any_cpu = false;
  for (const DeviceId& device : placement.devices()) {
    any_cpu = any_cpu || device.kind == DeviceId::Kind::cpu;
    if (std::find(names.begin(), names.end(), device.str()) == names.end()) names.push_back(device.str());
  }
  constexpr size_t kMost = 8;
  const size_t more = names.size() - std::min(names.size(), kMost);
  names.resize(names.size() - more);
  std::string text = plan.config.strategy.name;
  if (placement.devices().size() > 1) text += ", " + placement_text(placement);
  text += fmt::format(" on {}", fmt::join(names, ", "));
  if (more > 0) text += fmt::format(" and {} more", format_count(static_cast<int64_t>(more)));
  const std::vector<int>& counts = plan.ranks.counts;
  const std::string total = format_plural(plan.ranks.total(), "replica");
  if (plan.has_divided_replicas())
    text += fmt::format(", divided among {} processes", plan.world.size());
  else if (std::adjacent_find(counts.begin(), counts.end(), std::not_equal_to<>()) != counts.end())
    text +=
        fmt::format(" in process 0 of {}, {} in total ({})", counts.size(), total, fmt::join(counts, " + "));
  else if (counts.size() > 1)
    text += fmt::format(" in each of {} processes, {} in total", counts.size(), total);
  if (!any_cpu) return text;
  const CpuInfo cpu = cpu_info();
  return text + fmt::format(" ({}, {})", cpu.name, format_plural(cpu.cores, "core"));
}

}  // namespace

std::string describe_start(const Trainer& trainer, const RunDirectory& directory) {
  const RunConfig& config = trainer.config();
  const TrainingState& state = trainer.state();
  const int64_t parameters = config.graph.count_parameters(true) + config.graph.count_parameters(false);
  std::string text = fmt::format("{}: {}; {}\n", config.name, format_plural(parameters, "parameter"),
                                 describe_devices(trainer.plan()));
  text += format_plural(trainer.loader().samples(), "sample");
  if (trainer.validation())
    text += fmt::format(", {} to validate", format_count(trainer.validation()->samples()));
  text += fmt::format("; batches of {}, {} per epoch, {}", format_count(config.train.batch_size),
                      format_plural(trainer.loader().steps_per_epoch(), "step"),
                      format_plural(config.train.epochs, "epoch"));
  if (state.step > 0)
    text += fmt::format("; continues after epoch {}, step {}", format_count(state.epoch),
                        format_count(state.step));
  return text + "\nsaved in " + directory.path();
}

}  // namespace dtrain
