#include "nn/plan.h"

#include "nn/plan_builder.h"

namespace dtrain {

Plan::Plan(const Graph& graph, const ParameterLayout& layout, std::span<const Head> heads, Ops& ops,
           int64_t batch, Purpose purpose)
    : batch_(batch) {
  PlanBuilder(*this, graph, layout, heads, ops, purpose).build();
  arena_.assign();
}

Plan::~Plan() = default;

size_t Plan::count_totals(std::span<const Head> heads) {
  size_t count = 0;
  for (const Head& head : heads) count += 1 + head.metrics.size();
  return count;
}

void Plan::bind(const PlanArrays& arrays) {
  if (arrays == arrays_) return;
  arrays_ = arrays;
  for (const auto& binder : binders_) binder();
}

void Plan::run(const StepInfo& info, const std::function<void(int64_t)>& on_ready) {
  auto ready = ready_.begin();
  for (size_t done = 0; done < instructions_.size();) {
    instructions_[done](info);
    ++done;
    for (; on_ready && ready != ready_.end() && ready->first == done; ++ready) on_ready(ready->second);
  }
}

}  // namespace dtrain
