// One microbatch on its way through a plan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "nn/layer.h"
#include "ops/ops.h"
#include "program/plan.h"

namespace dtrain {

/// The numbers of one run of a plan. They are the same for the same microbatch of batches of one size, so
/// that the run can be captured.
struct StepInfo {
  uint64_t seed = 0;
  uint64_t first_sample = 0;  // the microbatch's first sample's place in the global batch
  int64_t global_batch = 1;   // samples that the mean loss is over
};

/// The arrays outside a plan's own that it reads and writes, of one slot: all of its device's memory.
struct SlotArrays {
  std::byte* arena = nullptr;          // arena_bytes(slot).frame for what the plan computes there
  std::byte* shared = nullptr;         // arena_bytes(slot).shared
  const float* values = nullptr;       // the slot's parameters
  const std::byte* weights = nullptr;  // and in the compute type: the same memory where that is float32
  float* gradients = nullptr;          // in training: a whole with_gradient() of the slot's layout
  bool accumulates = false;  // whether gradients are added to those already there; else they replace them
  StateShards* shards = nullptr;  // in the place of what the plan's options say there is not as a whole
  double* totals = nullptr;       // each run adds to them
  const StepState* state = nullptr;
  bool operator==(const SlotArrays&) const = default;
};

/// Knows where the values of a plan are for one microbatch, and the microbatch's part of the step. One plan
/// may have several frames under way at once, each in separate memory. If each slot has a separate thread,
/// each slot has separate frames, too. A frame belongs to one replica and lives no longer than the plan.
class Frame {
 public:
  explicit Frame(const Plan& plan);

  /// Where everything of a slot is from now on.
  void bind(int slot, const SlotArrays& arrays);
  void set_step(const StepInfo& info) { step_ = info; }

  /// Where the batch is to be put before the first instruction: the inputs in the model's order, then (but
  /// for prediction) the heads' targets, and the weights where they have some. An input of float32 is to be
  /// put there in the compute type. Columns of slots that are not bound have no data.
  std::span<const View> columns() const { return columns_; }
  /// The model's outputs behind the last instruction, in prediction; plain layout, those of float32 in the
  /// compute type.
  std::span<const View> outputs() const { return outputs_; }
  const Plan& plan() const { return plan_; }

  // For the instructions.

  /// A value's memory; null for none.
  void* at(ValueId value) const { return value == ValueId::none ? nullptr : memory_[value]; }
  const float* floats(ValueId value) const { return static_cast<const float*>(at(value)); }
  /// The memory of several values; valid until the next call.
  std::span<const void* const> at_all(std::span<const ValueId> values);
  const SlotArrays& arrays(int slot) const { return arrays_[static_cast<size_t>(slot)]; }
  const StepInfo& step() const { return step_; }
  const float* parameter(int slot, const ParameterPlace& place) const;
  /// Null where no gradient is wanted.
  float* gradient(int slot, const GradientPlace& place) const;
  /// The microbatch's part of the global batch.
  float share() const;
  /// The arguments of a layer's call.
  const LayerArguments& arguments(CallId call);
  /// Takes note that the link's array of that number is of this frame.
  void note_sent(LinkId link, uint64_t number) { sent_[link] = number; }
  uint64_t sent(LinkId link) const { return sent_[link]; }
  /// Called as gradients become ready (execute.h); may be null.
  const std::function<void(int64_t)>* on_ready = nullptr;

 private:
  void bind_call(CallId call);

  const Plan& plan_;
  StepInfo step_;
  std::vector<SlotArrays> arrays_;
  IdVector<ValueId, void*> memory_;
  IdVector<CallId, LayerArguments> arguments_;
  std::vector<View> columns_, outputs_;
  IdVector<LinkId, uint64_t> sent_;
  std::vector<const void*> pointers_;  // as large as the longest list that at_all() is asked for
};

}  // namespace dtrain
