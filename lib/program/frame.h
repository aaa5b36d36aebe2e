// The execution of a plan for one microbatch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "collective/world.h"
#include "nn/layer.h"
#include "ops/ops.h"
#include "program/parameter_update.h"
#include "program/plan.h"

namespace dtrain {

/// The scalars of one run of a plan. In all batches of equal size, a microbatch has the same scalars, so that
/// the run can be captured.
struct StepInfo {
  uint64_t seed = 0;
  uint64_t first_sample = 0;  // position of the microbatch's first sample in the global batch
  int64_t global_batch = 1;   // number of samples over which the mean loss is computed
};

/// The arrays of one slot that a plan reads and writes but does not own; all are in the memory of the slot's
/// device.
struct SlotArrays {
  std::byte* arena = nullptr;          // arena_bytes(slot).frame bytes for values of this frame
  std::byte* shared = nullptr;         // arena_bytes(slot).shared bytes, which all frames of the slot share
  const float* values = nullptr;       // the slot's parameters
  const std::byte* weights = nullptr;  // the parameters in the compute type; the same memory if that is
                                       // float32
  float* gradients = nullptr;          // in training: with_gradient() floats of the slot's layout
  bool accumulates = false;            // whether gradients are added to the gradients already there
  /// Gives access to the parameters and gradients of which the slot stores only shards (PlanOptions).
  StateShards* shards = nullptr;
  ParameterUpdate* update = nullptr;  // runs the all-reduces of the backward pass; null: none are run
  double* totals = nullptr;           // totals of losses and metrics, to which each run adds
  const StepState* state = nullptr;
  const float* loss_scales = nullptr;  // factors of the gradients of losses, by head; null: loss_scale of the
                                       // state for all
  const World* world = nullptr;  // run_all() and run_part() end when another process fails; null: they go on
  bool operator==(const SlotArrays&) const = default;
};

/// Holds the addresses of a plan's values for one microbatch, and the step's scalars. A plan may have several
/// frames in flight, each with separate memory. If each slot has a thread, each slot also has its own frames.
/// A frame belongs to one replica and must not outlive the plan.
class Frame {
 public:
  explicit Frame(const Plan& plan);

  /// Sets the arrays of a slot for the following runs.
  void bind(int slot, const SlotArrays& arrays);
  void set_step(const StepInfo& info) { step_ = info; }

  /// Returns where to write the batch before the first instruction: the inputs in the model's order, then
  /// (except in prediction) the heads' targets, and the row weights if there are any. Float32 inputs must be
  /// written in the compute type. Columns of slots that are not bound have no data.
  std::span<const View> columns() const { return columns_; }
  /// Returns the model's outputs after the last instruction, in prediction. They have the plain layout;
  /// float32 outputs are in the compute type.
  std::span<const View> outputs() const { return outputs_; }
  const Plan& plan() const { return plan_; }

  // Used by the instructions:

  /// Returns a value's memory; null for ValueId::none.
  void* at(ValueId value) const { return value == ValueId::none ? nullptr : memory_[value]; }
  const float* floats(ValueId value) const { return static_cast<const float*>(at(value)); }
  /// Returns the memory of several values; valid until the next call.
  std::span<const void* const> at_all(std::span<const ValueId> values);
  const SlotArrays& arrays(int slot) const { return arrays_[static_cast<size_t>(slot)]; }
  const StepInfo& step() const { return step_; }
  const float* parameter(int slot, const ParameterPlace& place) const;
  /// Returns null if no gradient is needed.
  float* gradient(int slot, const GradientPlace& place) const;
  /// Returns the microbatch's fraction of the global batch.
  float share() const;
  /// Returns the arguments of a layer's call.
  const LayerArguments& arguments(CallId call);
  /// Records that array `number` of the link belongs to this frame.
  void note_sent(LinkId link, uint64_t number) { sent_[link] = number; }
  uint64_t sent(LinkId link) const { return sent_[link]; }

 private:
  void bind_call(CallId call);

  const Plan& plan_;
  StepInfo step_;
  std::vector<SlotArrays> arrays_;
  IdVector<ValueId, void*> memory_;
  IdVector<CallId, LayerArguments> arguments_;
  std::vector<View> columns_, outputs_;
  IdVector<LinkId, uint64_t> sent_;
  std::vector<const void*> pointers_;  // as large as the longest list passed to at_all()
};

}  // namespace dtrain
