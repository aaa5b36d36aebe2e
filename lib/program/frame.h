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

/// The scalars of one run of a plan. A microbatch has the same scalars in all batches of the same size, so
/// that its run can be captured in a CUDA graph.
struct StepInfo {
  uint64_t seed = 0;
  uint64_t first_sample = 0;  // position of the microbatch's first sample in the global batch
  int64_t global_batch = 1;   // number of samples over which the mean loss is computed
};

/// Arrays of one slot that a plan reads and writes, but does not own. All arrays are in the memory of the
/// slot's device.
struct SlotArrays {
  std::byte* arena = nullptr;     // arena_bytes(slot).frame bytes for values of this frame
  std::byte* shared = nullptr;    // arena_bytes(slot).shared bytes, which all frames of the slot share
  const float* values = nullptr;  // the slot's parameters
  // The parameters in the compute type. Equal to `values` if the compute type is float32.
  const std::byte* weights = nullptr;
  float* gradients = nullptr;  // in training: with_gradient() floats of the slot's layout
  bool accumulates = false;    // whether the new gradients are added to the contents of `gradients`
  /// Access to sharded parameters and gradients; null if the state is replicated.
  StateShards* shards = nullptr;
  // Runs the all-reduces of the backward pass; null: the backward pass runs none.
  ParameterUpdate* update = nullptr;
  double* totals = nullptr;  // totals of losses and metrics; each run of the plan adds to the totals
  const StepState* state = nullptr;
  // Factors by which the gradients of the losses are multiplied, by head. If null, all gradients are
  // multiplied by the loss_scale of `state`.
  const float* loss_scales = nullptr;
  // If set, run_all() and run_part() end when another process fails. If null, they continue.
  const World* world = nullptr;
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

  /// Returns the arrays into which the batch must be written before the first instruction. The order is: the
  /// inputs in the model's order, then (except in prediction) the heads' targets, then the row weights if
  /// there are any. Float32 inputs must be written in the compute type. Columns on slots that are not bound
  /// have no data.
  std::span<const View> columns() const { return columns_; }
  /// Returns the model's outputs. To be used in prediction, after the last instruction. The outputs have the
  /// plain layout; float32 outputs are in the compute type.
  std::span<const View> outputs() const { return outputs_; }
  const Plan& plan() const { return plan_; }

  // The functions below are used by the instructions.

  /// Returns a value's memory; null for ValueId::none.
  void* at(ValueId value) const { return value == ValueId::none ? nullptr : memory_[value]; }
  const float* floats(ValueId value) const { return static_cast<const float*>(at(value)); }
  /// Returns the memory of several values; valid until the next call.
  std::span<const void* const> at_all(std::span<const ValueId> values);
  const SlotArrays& arrays(int slot) const { return arrays_[static_cast<size_t>(slot)]; }
  const StepInfo& step() const { return step_; }
  const float* parameter(int slot, const ParameterPlace& place) const;
  /// Returns the address at which a gradient is written; null if the gradient is not needed.
  float* gradient(int slot, const GradientPlace& place) const;
  /// Returns the microbatch's fraction of the global batch.
  float share() const;
  /// Returns the arguments of a layer's call.
  const LayerArguments& arguments(CallId call);
  /// Records that this frame has sent array `number` over the link.
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
