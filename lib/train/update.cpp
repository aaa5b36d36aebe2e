#include "train/update.h"

#include <algorithm>

namespace dtrain {

namespace {

Range common(Range a, Range b) {
  const int64_t begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

}  // namespace

Update::Update(const ParameterLayout& layout, const Optimizer& optimizer, const GradientRule& gradient_rule)
    : trained_(layout.trained()), rule_(optimizer.rule()), gradient_rule_(gradient_rule) {
  for (const ParameterSlice& slice : layout.slices()) {
    if (!slice.moving_average || slice.offset < layout.trained() || slice.offset >= layout.with_gradient())
      continue;
    statistics_.push_back({{slice.offset, slice.offset + slice.elements()}, *slice.moving_average});
  }
}

Range Update::trained(Range range) const {
  return common(range, {0, trained_});
}

void Update::apply(Ops& ops, const StepState* state, const ParameterMemory& memory, const float* gradient,
                   Range range) const {
  const Range part = trained(range);
  if (part.size() > 0) {
    constexpr size_t kMost = 3;  // slots that a rule has
    float* slots[kMost] = {};
    for (size_t i = 0; i < memory.slots(); ++i) slots[i] = memory.slot(i) + part.begin;
    std::byte* copy = memory.copy();
    if (copy) copy += static_cast<size_t>(part.begin) * bytes_of(ops.compute_type());
    ops.update(rule_, {.state = state,
                       .weights = memory.values() + part.begin,
                       .gradient = gradient + part.begin,
                       .slots = {slots, memory.slots()},
                       .weights_copy = copy,
                       .n = part.size()});
  }
  for (const Statistics& statistics : statistics_) {
    const Range mine = common(range, statistics.range);
    if (mine.size() > 0)
      ops.update(MovingAverageRule{statistics.momentum}, {.state = state,
                                                          .weights = memory.values() + mine.begin,
                                                          .gradient = gradient + mine.begin,
                                                          .slots = {},
                                                          .n = mine.size()});
  }
}

}  // namespace dtrain
