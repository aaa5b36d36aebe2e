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

void Plan::bind(std::byte* arena, const float* values, float* gradients, double* totals) {
  if (arena == base_ && values == values_ && gradients == gradients_ && totals == totals_) return;
  base_ = arena;
  values_ = values;
  gradients_ = gradients;
  totals_ = totals;
  for (const auto& binder : binders_) binder();
}

void Plan::run(const StepInfo& info) {
  for (const auto& instruction : instructions_) instruction(info);
}

}  // namespace dtrain
