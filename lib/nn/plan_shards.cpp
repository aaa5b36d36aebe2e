// What a plan does where a replica has parts of the parameters and gradients only.
#include <algorithm>

#include "nn/plan_builder.h"

namespace dtrain {

namespace {

/// Slices lie next to each other where nothing but what aligns them is between.
bool follows(const Range& range, const ParameterSlice& slice) {
  return slice.offset >= range.end && slice.offset - range.end < 16;
}

}  // namespace

/// The next in the order of the phase: layers with parameters, on their way back those that have a gradient.
int PlanBuilder::next_to_gather(int i) const {
  if (recomputing_) return -1;
  const bool back = phase_ == Phase::backward;
  for (int next = back ? i - 1 : i + 1; next >= 0 && next < end(); back ? --next : ++next) {
    const NodeState& s = states_[static_cast<size_t>(next)];
    if (s.layer && !node(next).parameters.empty() && (!back || s.needs_gradient)) return next;
  }
  return -1;
}

/// The parameters that lie next to each other come as one.
void PlanBuilder::emit_gather(int i) {
  const auto [entry, is_new] = on_their_way_.try_emplace(i);
  if (!is_new) return;
  std::vector<const ParameterSlice*> slices;
  for (size_t k = 0; k < node(i).parameters.size(); ++k) slices.push_back(&slice_of(i, k));
  std::sort(slices.begin(), slices.end(),
            [](const ParameterSlice* a, const ParameterSlice* b) { return a->offset < b->offset; });
  std::vector<Gathered>& runs = entry->second;
  for (const ParameterSlice* slice : slices) {
    if (runs.empty() || !follows(runs.back().range, *slice)) runs.push_back({{slice->offset, 0}});
    runs.back().range.end = slice->offset + slice->elements();
  }
  const int slot = slot_of(i);
  for (Gathered& run : runs) {
    run.buffer = add_buffer("parameters of " + node(i).name, slot,
                            static_cast<size_t>(run.range.size()) * sizeof(float));
    emit(slot, node(i).name + " gather", {}, {run.buffer},
         [slot, range = run.range, buffer = run.buffer](Frame& frame) {
           frame.arrays(slot).shards->gather(range, static_cast<float*>(frame.at(buffer)));
         });
    plan_.instructions_.back().gathered = run.range;
  }
}

/// Those of the next layer are under way while this one computes.
std::vector<ParameterPlace> PlanBuilder::gather_parameters(int i) {
  emit_gather(i);
  const int slot = slot_of(i);
  std::vector<Gathered> runs = on_their_way_.extract(i).mapped();
  std::vector<int> buffers;
  for (const Gathered& run : runs) buffers.push_back(run.buffer);
  emit(slot, node(i).name + " join", {}, std::move(buffers),
       [slot](Frame& frame) { frame.arrays(slot).shards->join(); });
  if (const int next = next_to_gather(i); next >= 0) emit_gather(next);
  const DType type = ops(slot).compute_type();
  for (Gathered& run : runs) {
    run.weights = run.buffer;
    if (type == DType::float32) continue;
    const std::string name = "parameters of " + node(i).name;
    run.weights = add_buffer(name, slot, static_cast<size_t>(run.range.size()) * bytes_of(type));
    emit(slot, name + " cast", {run.buffer}, {run.weights}, [ops = &ops(slot), run, type](Frame& frame) {
      ops->cast(frame.at(run.weights), type, frame.at(run.buffer), DType::float32, run.range.size());
    });
  }
  std::vector<ParameterPlace> places;
  for (size_t k = 0; k < node(i).parameters.size(); ++k) {
    const int64_t offset = slice_of(i, k).offset;
    const auto run = std::find_if(runs.begin(), runs.end(), [&](const Gathered& one) {
      return offset >= one.range.begin && offset < std::max(one.range.end, one.range.begin + 1);
    });
    places.push_back({.buffer = run->buffer, .weights = run->weights, .at = offset - run->range.begin});
  }
  return places;
}

/// At the boundaries of nodes, as each node's gradients are there at once; in the layout's order, which is
/// that in which backward makes them.
void PlanBuilder::plan_buckets() {
  const ParameterLayout& layout = layout_.whole();
  std::vector<const ParameterSlice*> slices;
  for (const ParameterSlice& slice : layout.slices())
    if (slice.offset < layout.trained()) slices.push_back(&slice);
  std::sort(slices.begin(), slices.end(),
            [](const ParameterSlice* a, const ParameterSlice* b) { return a->offset < b->offset; });
  int last_node = -1;
  for (const ParameterSlice* slice : slices) {
    const bool is_full =
        !buckets_.empty() && buckets_.back().range.size() >= layout.trained() / Plan::kGradientBuckets;
    if (buckets_.empty() || (is_full && slice->node != last_node))
      buckets_.push_back({{slice->offset, slice->offset}});
    buckets_.back().end = slice->offset + slice->elements();
    buckets_.back().range.end = buckets_.back().end;
    last_node = slice->node;
  }
  if (layout.with_gradient() > layout.trained())
    buckets_.push_back({{layout.trained(), layout.with_gradient()}, layout.with_gradient()});
}

/// What lies between parameters is summed as well, and must be zeros.
GradientPlace PlanBuilder::bucket_place(const ParameterSlice& slice) {
  const auto bucket = std::find_if(buckets_.begin(), buckets_.end(), [&](const Bucket& one) {
    return slice.offset >= one.range.begin && slice.offset < one.range.end;
  });
  if (bucket->buffer < 0) {
    const auto bytes = static_cast<size_t>(bucket->range.size()) * sizeof(float);
    bucket->buffer = add_buffer("gradients to reduce", 0, bytes);
    emit(0, "gradients zero", {}, {bucket->buffer},
         [context = &ops(0).context(), buffer = bucket->buffer, bytes](Frame& frame) {
           context->enqueue_zero(frame.at(buffer), bytes);
         });
  }
  return {.buffer = bucket->buffer, .at = slice.offset - bucket->range.begin};
}

bool PlanBuilder::is_bucket(int buffer) const {
  return std::any_of(buckets_.begin(), buckets_.end(),
                     [&](const Bucket& bucket) { return bucket.buffer == buffer; });
}

void PlanBuilder::reduce_ready(int64_t end) {
  for (; reduced_ < buckets_.size() && buckets_[reduced_].end <= end; ++reduced_) {
    const Bucket& bucket = buckets_[reduced_];
    emit(0, "gradients reduce", {bucket.buffer}, {},
         [range = bucket.range, buffer = bucket.buffer](Frame& frame) {
           frame.arrays(0).shards->reduce(range, static_cast<const float*>(frame.at(buffer)));
         });
    plan_.instructions_.back().reduced = bucket.range;
  }
}

}  // namespace dtrain
