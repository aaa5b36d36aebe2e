#include "engine/update/weight_rules.h"

#include <algorithm>

namespace dtrain {

WeightRules::WeightRules(const ParameterLayout& layout) {
  for (const ParameterSlice* slice : layout.by_offset({0, layout.trained()})) {
    const Range range{slice->offset, slice->offset + slice->elements()};
    // Two parameters with the same penalty are joined. The padding between them is zero, so it has no
    // penalty.
    const bool goes_on = !penalties_.empty() && penalties_.back().spec == slice->penalty &&
                         slice->offset - penalties_.back().range.end < ParameterLayout::kAlignment;
    if (goes_on)
      penalties_.back().range.end = range.end;
    else if (slice->penalty)
      penalties_.push_back({range, slice->penalty});
    if (slice->orthogonal) orthogonal_.push_back({range, slice->orthogonal.spec_for(slice->shape)});
    if (slice->constraint && slice->elements() > 0)
      constraints_.push_back(
          {range, slice->constraint->spec_for(slice->shape), slice->constraint->is_elementwise()});
  }
}

bool WeightRules::need_whole_parameters() const {
  return penalties_read_all() || std::any_of(constraints_.begin(), constraints_.end(),
                                             [](const Limit& limit) { return !limit.elementwise; });
}

void WeightRules::add_penalties(Ops& ops, const ParameterMemory& memory, Range range, double* total) const {
  for (const Penalty& penalty : penalties_)
    if (const Range part = overlap(range, penalty.range); part.size() > 0)
      ops.add_penalty(penalty.spec, memory.values(part.begin), total, part.size());
  for (const OrthogonalRule& rule : orthogonal_)
    if (rule.range.begin >= range.begin && rule.range.begin < range.end)
      ops.add_orthogonal_penalty(rule.spec, memory.values(rule.range.begin), total);
}

void WeightRules::add_penalty_gradients(Ops& ops, const GradientRule& rule, const double* row_weights,
                                        const StepState* state, const ParameterMemory& memory,
                                        float* gradient, Range range) const {
  for (const Penalty& penalty : penalties_)
    if (const Range part = overlap(range, penalty.range); part.size() > 0)
      ops.add_penalty_gradient(penalty.spec, {.rule = rule,
                                              .row_weights = row_weights,
                                              .state = state,
                                              .weights = memory.values(part.begin),
                                              .gradient = gradient + (part.begin - range.begin),
                                              .n = part.size()});
  for (const OrthogonalRule& orthogonal : orthogonal_)
    if (const Range part = overlap(range, orthogonal.range); part.size() > 0)
      ops.add_orthogonal_gradient(orthogonal.spec,
                                  {.rule = rule,
                                   .row_weights = row_weights,
                                   .state = state,
                                   .weights = memory.values(orthogonal.range.begin),
                                   .gradient = gradient + (part.begin - range.begin),
                                   .n = part.size()},
                                  part.begin - orthogonal.range.begin);
}

void WeightRules::constrain(Ops& ops, const StepState* state, const ParameterMemory& memory,
                            Range range) const {
  for (const Limit& limit : constraints_) {
    Range part = limit.range;
    ConstraintSpec spec = limit.spec;
    if (limit.elementwise) {
      part = overlap(range, part);
      spec.inner = part.size();
    } else if (part.begin < range.begin || part.begin >= range.end) {
      continue;
    }
    if (part.size() > 0) ops.constrain(spec, state, memory.values(part.begin), memory.copy(part.begin));
  }
}

}  // namespace dtrain
