#include "engine/replica_plans.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

namespace dtrain {

ReplicaPlans::ReplicaPlans(const Graph& graph, const ModelLayout& layout, std::span<const Head> heads,
                           const Placement& placement, std::vector<Ops*> ops, std::vector<Collective*> groups,
                           const Options& options)
    : graph_(graph),
      layout_(layout),
      heads_(heads),
      placement_(placement),
      microbatches_(
          static_cast<int>(std::min<int64_t>(placement.microbatches, std::numeric_limits<int>::max()))),
      options_(options),
      ops_(std::move(ops)) {
  if (groups[0]->size() > 1 && graph.is_synchronized()) groups_ = std::move(groups);
  for (int slot = 0; slot < slots(); ++slot)
    in_flight_.push_back(most_in_flight(placement.schedule, slot, slots(), microbatches_));
}

const Plan& ReplicaPlans::plan(const PlanKey& key) {
  const std::lock_guard making(making_);
  {
    const std::lock_guard lock(mutex_);
    if (const auto made = plans_.find(key); made != plans_.end()) return *made->second;
  }
  std::unique_ptr<Plan> made = make(key);
  const std::lock_guard lock(mutex_);
  if (aborted_) made->abort();
  return *plans_.emplace(key, std::move(made)).first->second;
}

/// Creates a plan, which may take minutes, because libraries may search, load and compile kernels.
std::unique_ptr<Plan> ReplicaPlans::make(const PlanKey& key) {
  const auto working = Watchdog::working(watchdog_);
  PlanOptions options;
  options.spin = options_.spin;
  options.remote = options_.remote;
  if (key.purpose == Plan::Purpose::training) {
    options.replicas = groups_;
    options.in_flight = in_flight_;
    options.reduces_gradients = reduces_gradients();
    options.accumulates = options_.accumulates;
    options.all_reduce_bucket = options_.all_reduce_bucket;
    options.all_reduces_row_weights = options_.all_reduces_row_weights;
  }
  options.gathers_parameters = placement_.sharded == ShardLevel::parameters;
  if (key.length == 0)
    return std::make_unique<Plan>(graph_, layout_, heads_, ops_, placement_.slots, key, options);
  auto model = shorter_.find(key.length);
  if (model == shorter_.end())
    model = shorter_.emplace(key.length, shorter_model(graph_, heads_, key.length)).first;
  return std::make_unique<Plan>(model->second.graph, layout_, model->second.heads, ops_, placement_.slots,
                                key, options);
}

void ReplicaPlans::expect(int slot, Plan::Purpose purpose, const Microbatches& microbatches, int64_t length) {
  if (!has_remote_slots()) return;
  for (int index = 0; index < microbatches.count(); ++index)
    if (const int64_t size = microbatches[index].size(); size > 0) plan({purpose, size, length}).expect(slot);
}

uint32_t ReplicaPlans::fingerprint(Plan::Purpose purpose, const Microbatches& microbatches, int64_t length) {
  std::string transfers;
  for (const int64_t size : microbatches.sizes()) transfers += plan({purpose, size, length}).transfers();
  return stream_of(transfers);
}

void ReplicaPlans::abort() noexcept {
  const std::lock_guard lock(mutex_);
  aborted_ = true;
  for (const auto& [key, plan] : plans_) plan->abort();
}

}  // namespace dtrain
