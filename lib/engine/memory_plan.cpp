#include "engine/memory_plan.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/bytes.h"

namespace dtrain {

namespace {

void add(MemoryDemand& demand, const MemoryPlan& plan) {
  if (!demand.largest || plan.total() > demand.largest->total()) demand.largest = plan;
  MemoryPlan& sum = demand.sum;
  sum.parameters += plan.parameters;
  sum.optimizer_slots += plan.optimizer_slots;
  sum.gradients += plan.gradients;
  sum.activations += plan.activations;
  sum.staging += plan.staging;
  sum.data += plan.data;
  sum.metrics += plan.metrics;
}

}  // namespace

std::string MemoryDemand::name() const {
  return gpu ? fmt::format("gpu:{}", *gpu) : "cpu";
}

std::string MemoryDemand::parts() const {
  std::vector<std::string> texts;
  for (const auto& [bytes, what] : {std::pair{sum.parameters, "parameters"},
                                    {sum.optimizer_slots, "the optimizer's slots"},
                                    {sum.gradients, "gradients"},
                                    {sum.activations, "activations"},
                                    {sum.staging, "batches in transfer"},
                                    {sum.data + host.data, "samples"},
                                    {sum.metrics + host.metrics, "metrics"},
                                    {host.read_ahead, "batches read ahead"},
                                    {host.copies, "copies on the host"},
                                    {host.transfers, "values sent among processes"}})
    if (bytes > 0) texts.push_back(fmt::format("{} of {}", format_bytes(bytes), what));
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::vector<MemoryDemand> sum_demands(std::span<const MemoryPlan> plans, const HostNeeds& needs,
                                      const FreeMemory& host, const std::map<int, FreeMemory>& gpus) {
  std::vector<MemoryDemand> demands{{.free = host, .host = needs}};
  std::map<int, size_t> places;  // index of each GPU in `demands`
  for (const auto& [gpu, free] : gpus) {
    places[gpu] = demands.size();
    demands.push_back({.gpu = gpu, .free = free});
  }
  for (const MemoryPlan& plan : plans) {
    add(demands[plan.device.kind == DeviceId::Kind::gpu ? places.at(plan.device.index) : 0], plan);
    demands[0].host.transfers += plan.transfers;
  }
  return demands;
}

const MemoryDemand& scarcest(std::span<const MemoryDemand> demands) {
  return *std::max_element(demands.begin(), demands.end(), [](const MemoryDemand& a, const MemoryDemand& b) {
    return a.excess() < b.excess();
  });
}

std::string shortage(const MemoryDemand& demand, int64_t batch_size) {
  return fmt::format("{}: batches of {} need {} ({}), but {} is available ({})", demand.name(), batch_size,
                     format_bytes(demand.total()), demand.parts(), format_bytes(demand.free.bytes),
                     demand.free.limit);
}

std::string host_advice(const MemoryDemand& host, size_t available) {
  if (host.total() <= available || host.excess() > 0) return "";
  return fmt::format(
      "{}: the run needs {} ({}), but only {} are free now. The run may be slow, or the operating system may "
      "end it",
      host.name(), format_bytes(host.total()), host.parts(), format_bytes(available));
}

}  // namespace dtrain
