#include <algorithm>
#include <utility>

#include "program/passes/insertions.h"
#include "program/passes/passes.h"
#include "program/update_program.h"

namespace dtrain {

namespace {

/// A bucket of gradients that are reduced together.
struct Bucket {
  Range range;                    // range of the layout
  int64_t end = 0;                // end of the bucket's last parameter
  ValueId value = ValueId::none;  // set once a gradient is written to the bucket
};

/// Divides the gradients into buckets at the boundaries of nodes, because all gradients of a node are
/// complete at the same time. Buckets are in the order of the layout. Statistics have their own bucket, which
/// is the last one.
std::vector<Bucket> make_buckets(const ParameterLayout& layout) {
  std::vector<Bucket> buckets;
  int last_node = -1;
  for (const ParameterSlice* slice : layout.by_offset({0, layout.trained()})) {
    const bool is_full =
        !buckets.empty() && buckets.back().range.size() >= layout.trained() / kGradientBuckets;
    if (buckets.empty() || (is_full && slice->node != last_node))
      buckets.push_back({.range = {slice->offset, slice->offset}});
    buckets.back().end = slice->offset + slice->elements();
    buckets.back().range.end = buckets.back().end;
    last_node = slice->node;
  }
  if (layout.with_gradient() > layout.trained())
    buckets.push_back({.range = {layout.trained(), layout.with_gradient()}, .end = layout.with_gradient()});
  return buckets;
}

/// Makes instructions write their gradients to places in buckets, and inserts the instructions that zero and
/// reduce the buckets.
class Bucketing {
 public:
  explicit Bucketing(CompileState& step)
      : step_(step), program_(step.program), buckets_(make_buckets(step.layout.whole())) {}

  void run() {
    std::vector<Instruction> old = std::exchange(program_.instructions, {});
    for (Instruction& instruction : old) {
      if (const auto* ready = std::get_if<GradientsReady>(&instruction.work)) {
        reduce_below(ready->end);
        continue;
      }
      node_ = instruction.node;
      std::visit([this](auto& work) { redirect(work); }, instruction.work);
      program_.instructions.push_back(std::move(instruction));
    }
    reduce_below(step_.layout.whole().with_gradient());
  }

 private:
  void redirect(LayerBackward& work) {
    for (GradientPlace& place : program_.calls[work.call].gradients) redirect(place);
  }
  void redirect(SumGradients& work) { redirect(work.bias); }
  void redirect(SumBiasGradient& work) { redirect(work.bias); }
  void redirect(AddSharedGradient& work) { redirect(work.to); }
  void redirect(ZeroGradient& work) { redirect(work.to); }
  void redirect(auto&) {}

  /// Changes `place` so that the gradient is written to its bucket. The bucket is filled with zeros before
  /// its first gradient is written, because the padding between the parameters is also reduced.
  void redirect(GradientPlace& place) {
    if (place.offset < 0) return;
    const auto bucket = std::find_if(buckets_.begin(), buckets_.end(), [&](const Bucket& one) {
      return place.offset >= one.range.begin && place.offset < one.range.end;
    });
    if (bucket->value == ValueId::none) {
      bucket->value = step_.add_array(ProgramValue::Kind::parameter_gradient, "gradients to reduce", 0,
                                      static_cast<size_t>(bucket->range.size()) * sizeof(float));
      emit("gradients zero", ZeroBucket{bucket->value});
    }
    place = {.value = bucket->value, .at = place.offset - bucket->range.begin};
  }

  void reduce_below(int64_t end) {
    for (; reduced_ < buckets_.size() && buckets_[reduced_].end <= end; ++reduced_)
      emit("gradients reduce", ReduceBucket{buckets_[reduced_].range, buckets_[reduced_].value});
  }

  void emit(const char* name, Work work) {
    program_.instructions.push_back({0, Phase::backward, node_, name, std::move(work)});
  }

  CompileState& step_;
  Program& program_;
  std::vector<Bucket> buckets_;
  size_t reduced_ = 0;  // number of buckets that are already reduced
  NodeId node_ = NodeId::none;
};

/// Replaces the GradientsReady marks by all-reduces of full buckets.
void all_reduce_buckets(CompileState& step) {
  const int64_t gradients = step.layout.whole().with_gradient();
  const std::vector<Range> buckets = reduction_buckets(gradients, step.options.all_reduce_bucket);
  size_t reduced = 0;
  std::vector<Instruction> all;
  NodeId node = NodeId::none;
  const auto reduce_below = [&](int64_t end) {
    for (; reduced < buckets.size() && buckets[reduced].end <= end; ++reduced)
      all.push_back({0, Phase::backward, node, "gradients all-reduce", AllReduceGradients{buckets[reduced]}});
  };
  for (Instruction& instruction : std::exchange(step.program.instructions, {})) {
    node = instruction.node;
    if (const auto* ready = std::get_if<GradientsReady>(&instruction.work))
      reduce_below(ready->end);
    else
      all.push_back(std::move(instruction));
  }
  reduce_below(gradients);
  if (step.options.all_reduces_row_weights)
    all.push_back({0, Phase::backward, node, "row weights all-reduce", AllReduceRowWeights{}});
  step.program.instructions = std::move(all);
}

}  // namespace

void reduce_gradients(CompileState& step) {
  if (!step.training()) return;
  if (step.options.reduces_gradients) Bucketing(step).run();
  if (step.options.all_reduce_bucket > 0) all_reduce_buckets(step);
}

}  // namespace dtrain
