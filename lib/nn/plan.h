// A graph made ready to run for one batch size: instructions over the devices that it is spread over, with
// every layer prepared and every byte placed beforehand.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "nn/arena.h"
#include "nn/graph.h"
#include "nn/loss.h"
#include "nn/parameters.h"
#include "ops/ops.h"

namespace dtrain {

/// A metric of an output.
struct HeadMetric {
  std::string name;  // as it is reported
  std::shared_ptr<const Metric> metric;
  int64_t sums = 1;       // that it keeps
  bool weighted = false;  // by the rows' weights, where they have some
};

/// What is asked of one of the model's outputs.
struct Head {
  ValueRef output;  // the prediction
  std::shared_ptr<const Loss> loss;
  std::vector<HeadMetric> metrics;
  TensorSpec target;  // as the loss wants it
  /// The column of the rows' weights, which is the same for all heads; nothing where all rows count the same.
  /// A sample has one weight for all of its rows, or one for each.
  std::optional<TensorSpec> weights = {};

  /// Its totals: the loss's sum, the metrics' sums, and where there are weights their sum.
  int64_t totals() const;
};

/// What one run of a plan is about. The same for the same microbatch of batches of one size, so that the run
/// can be captured.
struct StepInfo {
  uint64_t seed = 0;
  uint64_t first_sample = 0;  // the microbatch's first sample's place in the global batch
  int64_t global_batch = 1;   // samples that the mean loss is over
};

/// What a plan is made for.
struct PlanKey {
  enum class Purpose {
    training,    // forward, losses, metrics, backward
    evaluation,  // forward as at inference, losses, metrics
    prediction,  // forward as at inference
  };
  Purpose purpose = Purpose::training;
  int64_t batch = 1;  // samples, at least one
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy takes the 0 inside a defaulted <=> for a pointer.
  auto operator<=>(const PlanKey&) const = default;
};

/// The arrays outside a plan's own that it reads and writes, of one slot: all of its device's memory.
struct SlotArrays {
  std::byte* arena = nullptr;          // arena_bytes(slot) for what the plan computes there
  const float* values = nullptr;       // the parameters
  const std::byte* weights = nullptr;  // and in the compute type: the same memory where that is float32
  float* gradients = nullptr;          // in training: a whole layout.with_gradient(), overwritten by each run
  double* totals = nullptr;            // each run adds to them
  const StepState* state = nullptr;
  bool operator==(const SlotArrays&) const = default;
};

/// Where a parameter's gradient is written.
struct GradientPlace {
  int64_t offset = -1;  // among the layout's gradients; -1: none is wanted, or it goes to a buffer
  int buffer = -1;      // where another user of the same parameter writes the layout's
};

/// The calls of one prepared layer: what its arguments are. Buffers are numbers; -1 is none.
struct LayerCall {
  int slot = 0;
  std::vector<int> inputs, outputs, diff_outputs, diff_inputs;
  int saved = -1;
  std::vector<int64_t> parameters;  // offsets in the layout
  std::vector<GradientPlace> gradients;
  int users = 1;  // layers that have these parameters: each gives its part of a statistic
};

/// Memory that a plan needs while it runs, of its slot's arena.
struct PlanBuffer {
  std::string name;  // "dense_1", "gradient of dense_1"
  int slot = 0;
  int in_arena = 0;  // the slot's arena's number for it
  size_t bytes = 0;
};

class Plan;

/// A microbatch on its way through a plan: where the plan's buffers are, and what of the step concerns it.
/// One plan may have several under way at once, each in memory of its own. Belongs to one replica; lives no
/// longer than the plan.
class Frame {
 public:
  explicit Frame(const Plan& plan);

  /// Where everything is from now on, by slot.
  void bind(std::span<const SlotArrays> arrays);
  void set_step(const StepInfo& info) { step_ = info; }

  /// Where the batch is to be put before the first instruction: the inputs in the model's order, then (but
  /// for prediction) the heads' targets, and the weights where they have some. An input of float32 is to be
  /// put there in the compute type.
  std::span<const View> columns() const { return columns_; }
  /// The model's outputs behind the last instruction, in prediction; plain layout, those of float32 in the
  /// compute type.
  std::span<const View> outputs() const { return outputs_; }
  const Plan& plan() const { return plan_; }

  // What instructions ask for.

  /// A buffer's memory; null for -1.
  void* at(int buffer) const { return buffer < 0 ? nullptr : buffers_[static_cast<size_t>(buffer)]; }
  const SlotArrays& arrays(int slot) const { return arrays_[static_cast<size_t>(slot)]; }
  const StepInfo& step() const { return step_; }
  /// The microbatch's part of the global batch.
  float share() const;
  /// The arguments of a layer's call, complete but for `scratch`, which is set to that buffer.
  LayerArguments& arguments(int call, int scratch);

 private:
  void bind_call(size_t call);

  const Plan& plan_;
  StepInfo step_;
  std::vector<SlotArrays> arrays_;
  std::vector<void*> buffers_;
  std::vector<LayerArguments> arguments_;
  std::vector<View> columns_, outputs_;
};

/// One call that a plan makes, and all of the plan's memory that it touches.
struct Instruction {
  enum class Phase : uint8_t { forward, loss, backward };
  int slot = 0;
  Phase phase = Phase::forward;
  std::string name;                // "conv2d_1 forward"
  std::vector<int> reads, writes;  // buffers
  std::function<void(Frame&)> call;
  int64_t meeting = 0;  // numbers that each replica brings to a meeting within the call; 0: there is none
};

/// Immutable once made, but for what prepared layers keep: each slot's instructions are to be called by one
/// thread at a time. Calling them allocates nothing.
class Plan {
 public:
  using Purpose = PlanKey::Purpose;
  /// A column or an output, as its frames have it.
  struct Array {
    int buffer = 0;
    View view;  // without data
  };

  /// `ops`: by slot. `slots`: of each node of the graph; empty where all are on slot 0. Values and
  /// gradients cross slots by Transfer. `replicas`: those that synchronised layers meet, in training; null
  /// where there is one.
  Plan(const Graph& graph, const ParameterLayout& layout, std::span<const Head> heads,
       std::span<Ops* const> ops, std::span<const int> slots, const PlanKey& key,
       Collective* replicas = nullptr);
  ~Plan();
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  const PlanKey& key() const { return key_; }
  int64_t batch() const { return key_.batch; }
  int slots() const { return static_cast<int>(arenas_.size()); }
  size_t arena_bytes(int slot = 0) const { return arenas_[static_cast<size_t>(slot)].bytes(); }
  /// For each head Head::totals(), one head's after the other's.
  static size_t count_totals(std::span<const Head> heads);

  /// In an order in which each comes after what it depends on. A schedule may call them otherwise, as long as
  /// that holds for each frame.
  std::span<const Instruction> instructions() const { return instructions_; }
  std::span<const PlanBuffer> buffers() const { return buffers_; }
  /// A buffer's first byte in its slot's arena, and the first and the last instruction that it is kept for
  /// (Arena::kToTheEnd: behind the last).
  size_t offset_of(int buffer) const;
  Lifetime lifetime_of(int buffer) const;
  std::span<const Array> columns() const { return columns_; }
  /// How many of the columns are inputs.
  size_t input_columns() const { return input_columns_; }
  std::span<const Array> outputs() const { return outputs_; }

  /// Calls every instruction for a frame. `on_ready(end)` during a training run: the gradients in [0, end) of
  /// the layout's trained ones have all been enqueued. The last `end` is that of the last parameter, before
  /// what aligns it.
  void run(Frame& frame, const StepInfo& info, const std::function<void(int64_t)>& on_ready = nullptr) const;
  /// In the place of run(), where this replica has no rows of a microbatch of which others have some: takes
  /// part in their meetings, which are the same in a plan for any batch size.
  void meet(Collective& replicas) const;

 private:
  friend class PlanBuilder;
  friend class Frame;

  const PlanBuffer& buffer(int number) const { return buffers_[static_cast<size_t>(number)]; }

  PlanKey key_;
  std::vector<size_t> element_bytes_;  // of the compute type, by slot
  std::vector<Arena> arenas_;          // by slot
  std::vector<PlanBuffer> buffers_;
  std::vector<std::unique_ptr<PreparedLayer>> layers_;
  std::vector<std::unique_ptr<Reorder>> reorders_;
  std::vector<std::unique_ptr<Transfer>> transfers_;
  std::vector<LayerCall> calls_;
  std::vector<Instruction> instructions_;
  std::vector<Array> columns_, outputs_;
  size_t input_columns_ = 0;
  std::vector<std::pair<size_t, int64_t>> ready_;  // after so many instructions, the gradients below that
};

}  // namespace dtrain
