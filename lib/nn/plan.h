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

#include "collective/link.h"
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
  int64_t sums = 1;           // that it keeps
  bool weighted = false;      // by the rows' weights, where they have some
  std::string computes = {};  // kind and options: the same for metrics that differ in their names only
};

/// What is asked of one of the model's outputs.
struct Head {
  ValueRef output;                   // the prediction
  std::shared_ptr<const Loss> loss;  // null in a model that is only asked for predictions
  std::vector<HeadMetric> metrics;
  TensorSpec target;  // as the loss wants it
  /// The column of the rows' weights, which is the same for all heads; nothing where all rows count the same.
  /// A sample has one weight for all of its rows, or one for each.
  std::optional<TensorSpec> weights = {};

  /// The meaning of the output's numbers, according to the loss.
  Scores scores() const { return loss ? loss->takes() : Scores::any; }
  /// How many totals it has: the loss's sum, the metrics' sums, and where there are weights their sum.
  int64_t count_totals() const;
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

/// The state where it stands in parts at the replicas, as one of them sees it. All replicas make the same
/// calls in the same order. Ranges are of the layout.
class StateShards {
 public:
  virtual ~StateShards() = default;
  /// Whether the calls to come are of work that was never done before, so that what is called between them
  /// may allocate (collective.h says when that must not be).
  virtual void begin(bool first_time) = 0;
  /// Begins to bring the parameters in `range` to `to`, from whoever has them; null: only takes part.
  virtual void gather(Range range, float* to) = 0;
  /// Operations that are enqueued from now on find what has been gathered.
  virtual void join() = 0;
  /// Sums the replicas' gradients in `range`, this one's at `gradient` (null: it has none); each adds the
  /// part that it keeps to what it has of the step's gradient.
  virtual void reduce(Range range, const float* gradient) = 0;
};

/// The choices in a plan that depend on how it is run.
struct PlanOptions {
  /// The group that synchronised layers meet in training, by slot; empty where there is one replica.
  std::span<Collective* const> replicas = {};
  /// Microbatches that are under way at once at most, by slot; empty: one.
  std::span<const int> in_flight = {};
  /// Whether each slot's thread has a core of its own, so that it may wait busily for the others.
  bool spin = false;
  /// The slot has no whole parameters: a layer's are gathered ahead of each use, and freed behind it.
  bool gathers_parameters = false;
  /// The slot has no whole gradients: they are reduced as backward makes them.
  bool reduces_gradients = false;
  /// Some frames add their gradients to those of earlier microbatches (SlotArrays::accumulates).
  bool accumulates = false;
};

/// The bytes of a slot's memory that a plan takes.
struct ArenaBytes {
  size_t frame = 0;   // for each microbatch that is under way
  size_t shared = 0;  // for all of them: what no microbatch needs from its forward to its backward part
  size_t links = 0;   // for each, too: gradients on their way from other slots, in the links' own memory
};

/// The arrays outside a plan's own that it reads and writes, of one slot: all of its device's memory.
struct SlotArrays {
  std::byte* arena = nullptr;          // arena_bytes(slot).frame for what the plan computes there
  std::byte* shared = nullptr;         // arena_bytes(slot).shared
  const float* values = nullptr;       // the slot's parameters
  const std::byte* weights = nullptr;  // and in the compute type: the same memory where that is float32
  float* gradients = nullptr;          // in training: a whole with_gradient() of the slot's layout
  bool accumulates = false;  // whether the gradients are added to what stands there; else they replace it
  StateShards* shards = nullptr;  // in the place of what the plan's options say there is not as a whole
  double* totals = nullptr;       // each run adds to them
  const StepState* state = nullptr;
  bool operator==(const SlotArrays&) const = default;
};

/// Where a parameter is read.
struct ParameterPlace {
  int64_t offset = -1;  // in the slot's layout; -1: it is another slot's, and a copy is in buffers
  int buffer = -1;      // of float32
  int weights = -1;     // of the compute type: the same buffer where that is float32
  int64_t at = 0;       // of its first element, in both
};

/// Where a parameter's gradient is written.
struct GradientPlace {
  int64_t offset = -1;  // among the slot's gradients; -1: none is wanted, or it goes to a buffer
  int buffer = -1;      // where another user of the same parameter writes, what is to be reduced; where there
                        // is an offset as well, what is to be added there, in frames that accumulate
  int64_t at = 0;       // of its first element in the buffer
};

/// The calls of one prepared layer: what its arguments are. Buffers are numbers; -1 is none.
struct LayerCall {
  int slot = 0;
  std::vector<int> inputs, outputs, diff_outputs, diff_inputs;
  int saved = -1, addend = -1;
  std::vector<ParameterPlace> parameters;
  std::vector<GradientPlace> gradients;
  int users = 1;  // layers that have these parameters: each gives its part of a statistic
};

/// Memory that a plan needs while it runs, of its slot's.
struct PlanBuffer {
  std::string name;  // "dense_1", "gradient of dense_1"
  int slot = 0;
  size_t bytes = 0;
  bool is_sent = false;    // to another slot, which reads it at a time of its own
  Lifetime lifetime;       // the first and the last instruction that it is kept for
  bool is_shared = false;  // by the microbatches that are under way: a part of ArenaBytes::shared
  size_t offset = 0;       // of its first byte, in what the slot has for the microbatch, or for all of them
};

class Plan;

/// A microbatch on its way through a plan: where the plan's buffers are, and what of the step concerns it.
/// One plan may have several under way at once, each in memory of its own. Where each slot has a thread of
/// its own, each has frames of its own, too. Belongs to one replica; lives no longer than the plan.
class Frame {
 public:
  explicit Frame(const Plan& plan);

  /// Where everything of a slot is from now on.
  void bind(int slot, const SlotArrays& arrays);
  void set_step(const StepInfo& info) { step_ = info; }

  /// Where the batch is to be put before the first instruction: the inputs in the model's order, then (but
  /// for prediction) the heads' targets, and the weights where they have some. An input of float32 is to be
  /// put there in the compute type. Those of slots that are not bound have no data.
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
  /// Null where no gradient is wanted.
  float* gradient(int slot, const GradientPlace& place) const;
  /// The microbatch's part of the global batch.
  float share() const;
  /// The arguments of a layer's call, complete but for `scratch`, which is set to that buffer.
  LayerArguments& arguments(int call, int scratch);
  /// Takes note that the link's array of that number is of this frame.
  void note_sent(int link, uint64_t number) { sent_[static_cast<size_t>(link)] = number; }
  uint64_t sent(int link) const { return sent_[static_cast<size_t>(link)]; }

 private:
  void bind_call(size_t call);

  const Plan& plan_;
  StepInfo step_;
  std::vector<SlotArrays> arrays_;
  std::vector<void*> buffers_;
  std::vector<LayerArguments> arguments_;
  std::vector<View> columns_, outputs_;
  std::vector<uint64_t> sent_;  // by link
};

/// One call that a plan makes, and all of the plan's memory that it touches.
struct Instruction {
  enum class Phase : uint8_t { forward, loss, backward };
  int slot = 0;
  Phase phase = Phase::forward;
  std::string name;                // "conv2d_1 forward"
  std::vector<int> reads, writes;  // buffers
  std::function<void(Frame&)> call;
  // The part of the call that all replicas do together.
  int64_t meeting = 0;  // numbers that each brings to a meeting; 0: there is none
  Range gathered = {};  // parameters
  Range reduced = {};   // gradients
};

/// Immutable once made, but for what prepared layers keep and for what is on its way between slots: each
/// slot's instructions are to be called by one thread at a time. Calling them allocates nothing. What one
/// slot computes and another reads goes by a Link: a "send" right behind what makes it, a "receive" ahead of
/// the first reader.
class Plan {
 public:
  using Purpose = PlanKey::Purpose;
  /// A column or an output, as its frames have it.
  struct Array {
    int buffer = 0;
    View view;  // without data
  };

  enum class Part { forward, backward };  // the losses belong to the forward part
  /// Gradients are reduced in buckets of whole layers, each but the last of at least one of so many parts of
  /// the trained parameters: few collective calls, and little memory for what is not reduced yet.
  static constexpr int64_t kGradientBuckets = 32;

  /// `ops`: by slot. `slots`: of each node of the graph; empty where all are on slot 0.
  Plan(const Graph& graph, const ModelLayout& layout, std::span<const Head> heads, std::span<Ops* const> ops,
       std::span<const int> slots, const PlanKey& key, const PlanOptions& options = {});
  ~Plan();
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  const PlanKey& key() const { return key_; }
  int64_t batch() const { return key_.batch; }
  int slots() const { return static_cast<int>(arena_bytes_.size()); }
  const ArenaBytes& arena_bytes(int slot = 0) const { return arena_bytes_[static_cast<size_t>(slot)]; }
  /// How many totals all heads have together, which lie one head's after the other's.
  static size_t count_totals(std::span<const Head> heads);

  /// In an order in which each comes after what it depends on. A schedule may call them otherwise, as long as
  /// that holds for each frame.
  std::span<const Instruction> instructions() const { return instructions_; }
  std::span<const PlanBuffer> buffers() const { return buffers_; }
  std::span<const Array> columns() const { return columns_; }
  /// How many of the columns are inputs.
  size_t input_columns() const { return input_columns_; }
  std::span<const Array> outputs() const { return outputs_; }
  /// What layers' remarks say: the warnings with the layers' names in front, and each note once.
  std::span<const std::string> warnings() const { return warnings_; }
  std::span<const std::string> notes() const { return notes_; }

  /// Calls every instruction for a frame that is bound to all slots. `on_ready(end)` during a training run,
  /// of a plan over one slot: the gradients in [0, end) of the layout's trained ones have all been enqueued.
  /// The last `end` is that of the last parameter, before what aligns it.
  void run(Frame& frame, const StepInfo& info, const std::function<void(int64_t)>& on_ready = nullptr) const;
  /// Calls a slot's instructions of one part for a frame of this slot's; on the slot's thread, while those of
  /// the other slots call theirs for the same microbatches in an order that can meet.
  void run_part(Frame& frame, int slot, Part part) const;
  /// Waits until the other slots have what the frame sent them, so that its memory may be used anew.
  void wait_received(const Frame& frame, int slot) const;
  /// In the place of run(), where this replica has no rows of a microbatch of which others have some: takes
  /// part in the slot's meetings with them, which are the same in a plan for any batch size.
  void meet(int slot, Part part, Collective& replicas, StateShards* shards) const;
  /// Lets every thread that waits in run_part() or wait_received(), now or later, throw Aborted.
  void abort() const noexcept;

 private:
  friend class PlanBuilder;
  friend class Frame;

  static bool belongs(const Instruction& instruction, int slot, Part part);
  const PlanBuffer& buffer(int number) const { return buffers_[static_cast<size_t>(number)]; }

  PlanKey key_;
  /// A way from one slot to another.
  struct SlotLink {
    int from = 0;
    std::unique_ptr<Link> link;
  };

  std::vector<size_t> element_bytes_;    // of the compute type, by slot
  std::vector<ArenaBytes> arena_bytes_;  // by slot
  std::vector<PlanBuffer> buffers_;
  std::vector<std::unique_ptr<PreparedLayer>> layers_;
  std::vector<std::unique_ptr<Reorder>> reorders_;
  std::vector<SlotLink> links_;
  std::vector<LayerCall> calls_;
  std::vector<Instruction> instructions_;
  std::vector<Array> columns_, outputs_;
  size_t input_columns_ = 0;
  std::vector<std::string> warnings_, notes_;
  std::vector<std::pair<size_t, int64_t>> ready_;  // after so many instructions, the gradients below that
};

}  // namespace dtrain
