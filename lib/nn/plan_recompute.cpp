// Activations that are computed again for backward instead of kept (Chen et al., "Training Deep Nets with
// Sublinear Memory Cost", 2016).
#include "nn/plan_builder.h"

namespace dtrain {

/// What the layers of a segment read of each other on one slot is made anew ahead of their backward. What
/// comes from outside is kept, and what others read in backward.
bool PlanBuilder::is_recomputed_for(int v, int reader) const {
  if (reader >= end()) return false;
  const Value& its = values_[static_cast<size_t>(v)];
  const int segment = node(its.of.node).recompute;
  return segment >= 0 && segment == node(reader).recompute && its.slot == slot_of(its.of.node) &&
         its.slot == slot_of(reader);
}

void PlanBuilder::keep_or_recompute(int v, int reader) {
  if (!is_recomputed_for(v, reader)) {
    value(v).read_in_backward = true;
    return;
  }
  for (; v >= 0; v = value(v).made_from) value(v).is_recomputed = true;
}

/// Readers come before what they read, as what a layer that is called again reads must be there again, too.
void PlanBuilder::plan_recomputing() {
  if (!training()) return;
  for (int i = end() - 1; i >= 0; --i) {
    NodeState& s = state(i);
    if (node(i).recompute < 0 || !s.layer) continue;
    s.is_recomputed = s.needs_gradient && s.layer->requirements().saved_bytes > 0;
    for (const int v : s.values) s.is_recomputed = s.is_recomputed || is_made_anew(v);
    if (!s.is_recomputed) continue;
    for (const int input : s.inputs) keep_or_recompute(input, i);
  }
}

/// Ahead of the first backward of a segment on a slot. The calls are those of forward, on the same numbers,
/// and give the same bits. The layers of a segment follow each other.
void PlanBuilder::recompute_segment(int i) {
  const int segment = node(i).recompute, slot = slot_of(i);
  if (!recomputed_.insert({segment, slot}).second) return;
  int first = i;
  while (first > 0 && node(first - 1).recompute == segment) --first;
  const auto is_called = [&](int n) { return slot_of(n) == slot && state(n).layer; };
  for (int n = first; n <= i; ++n)
    if (is_called(n))
      for (const int input : state(n).inputs)
        if (is_made_anew(input) && value(input).made_from >= 0) value(input).computed = false;
  recomputing_ = true;
  for (int n = first; n <= i; ++n)
    if (is_called(n)) state(n).is_recomputed ? recompute(n) : reread(n);
  recomputing_ = false;
}

void PlanBuilder::recompute(int i) {
  reread(i);
  NodeState& s = state(i);
  const LayerRequirements& requirements = s.layer->requirements();
  if (requirements.is_view) {
    for (const int v : s.values)
      if (is_made_anew(v)) value(v).buffer = value(value(v).view_of).buffer;
    return;
  }
  for (size_t k = 0; k < s.values.size(); ++k) {
    // A value that layers outside the segment read in backward stays where it is.
    Value& out = value(s.values[k]);
    const int buffer = add_buffer(value_name(out.of), out.slot, value_bytes(out.of, out.slot));
    call_of(i).outputs[k] = buffer;
    if (is_made_anew(s.values[k])) out.buffer = buffer;
  }
  if (requirements.saved_bytes)
    call_of(i).saved = add_buffer("saved by " + node(i).name, slot_of(i), requirements.saved_bytes);
  std::vector<ParameterPlace> parameters = parameter_places(i);
  LayerCall& call = call_of(i);
  call.parameters = std::move(parameters);
  std::vector<int> reads = call.inputs, writes = call.outputs;
  add_parameters(call, reads);
  writes.push_back(call.saved);
  emit_call(i, true, std::move(reads), std::move(writes));
}

/// A call of its own, which reads what was made anew.
void PlanBuilder::reread(int i) {
  NodeState& s = state(i);
  for (const int input : s.inputs) compute(input);
  if (s.call < 0) return;
  LayerCall again = call_of(i);
  for (size_t k = 0; k < s.inputs.size(); ++k) again.inputs[k] = value(s.inputs[k]).buffer;
  s.call = static_cast<int>(plan_.calls_.size());
  plan_.calls_.push_back(std::move(again));
}

}  // namespace dtrain
