// How a Plan comes about.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "nn/plan.h"

namespace dtrain {

/// Walks the graph forward and back, emitting instructions; the arenas place the buffers afterwards.
class PlanBuilder {
 public:
  PlanBuilder(Plan& plan, const Graph& graph, const ParameterLayout& layout, std::span<const Head> heads,
              std::span<Ops* const> ops, std::span<const int> slots, Collective* replicas);
  void build();

 private:
  using Phase = Instruction::Phase;
  /// A node's output in one memory layout on one slot. Reads are by node number; `end()` stands for the
  /// losses and the outputs.
  struct Value {
    ValueRef of;
    Layout layout = Layout::plain;
    int slot = 0;
    int made_from = -1;  // the value that a reorder or a transfer makes this one from
    int view_of = -1;    // the value whose memory this is, too
    int buffer = -1;
    int last_read = -1;
    bool read_in_backward = false;
    bool computed = false;
  };
  /// A gradient that one reader of a value gives back.
  struct Contribution {
    int buffer = -1;
    Layout layout = Layout::plain;
    int slot = 0;
  };
  struct NodeState {
    PreparedLayer* layer = nullptr;  // null: an input, or fused into its input
    std::vector<int>
        values;  // the outputs as the layer gives them (of a fused activation: the layer before's)
    std::vector<int> inputs;  // values, in the layouts that the layer wants, on the layer's slot
    ActivationSpec activation;
    int fused_into = -1;
    bool needs_gradient = false;
    int call = -1;
    std::vector<std::vector<Contribution>> contributions;  // by output
  };
  /// Where a head's loss reads its prediction: before a final softmax or sigmoid where the loss has a form
  /// for that.
  struct LossPoint {
    ValueRef value;
    std::shared_ptr<const Loss> loss;
  };

  const GraphNode& node(int i) const { return graph_.nodes[static_cast<size_t>(i)]; }
  NodeState& state(int i) { return states_[static_cast<size_t>(i)]; }
  Value& value(int v) { return values_[static_cast<size_t>(v)]; }
  int value_of(ValueRef ref) { return state(ref.node).values[static_cast<size_t>(ref.output)]; }
  LayerCall& call_of(int i) { return plan_.calls_[static_cast<size_t>(state(i).call)]; }
  int slot_of(int i) const { return slots_.empty() ? 0 : slots_[static_cast<size_t>(i)]; }
  Ops& ops(int slot) const { return *ops_[static_cast<size_t>(slot)]; }
  int end() const { return static_cast<int>(graph_.nodes.size()); }
  int now() const { return static_cast<int>(plan_.instructions_.size()); }
  bool training() const { return plan_.key_.purpose == Plan::Purpose::training; }
  bool wants_losses() const { return plan_.key_.purpose != Plan::Purpose::prediction; }
  Shape batch_shape(ValueRef ref) const { return graph_.spec(ref).shape.prepended(plan_.batch()); }
  size_t value_bytes(ValueRef ref, int slot) const;

  void choose_loss_points();
  void fuse_activations();
  void find_gradient_needs();
  void prepare(int i);
  void prepare_layer(int i);
  /// The value of `ref` in a layout on a slot, made if it is new.
  int value_in(ValueRef ref, Layout layout, int slot);
  int add_value(const Value& value);
  void read(int v, int reader, bool in_backward);
  void read_heads();
  void settle_views();
  int root(int v) const;

  int add_buffer(std::string name, int slot, size_t bytes);
  std::string value_name(ValueRef ref) const;
  void place_columns();
  int place_column(const TensorSpec& spec, const std::string& name, int slot, size_t bytes);
  void emit_forward(int i);
  void choose_output_buffer(int i, size_t output);
  void compute(
      int v);  // emits the reorder or the transfer that makes a value, where one has to and has not yet
  void emit_head(size_t h, size_t first_total);
  void emit_metrics(size_t h, int weights, size_t first_total);
  /// The weights on a slot; -1 where there are none.
  int weights_on(int slot);
  int64_t rows_per_weight(size_t h) const;
  void emit_sum_of_weights(size_t h, int weights, size_t first_total);
  void emit_outputs();

  void emit_backward(int i);
  /// The buffer of the gradient of an output before the activation; -1 where nobody gives one.
  int gather_gradient(int i, size_t output);
  Contribution bring(const Contribution& contribution, const Value& to);
  void add_contribution(int v, int buffer);
  void emit_layer_backward(int i, const std::vector<int>& gradients);
  bool has_gradient(const ParameterSlice& slice) const { return slice.offset < layout_.with_gradient(); }
  GradientPlace gradient_place(int i, int index);
  void add_shared_gradients(int i);
  void emit_zero_gradients(int i);
  void note_ready(int i);

  void emit(int slot, std::string name, std::vector<int> reads, std::vector<int> writes,
            std::function<void(Frame&)> call);
  void emit_reorder(ValueRef ref, int slot, Layout from, Layout to, int src, int dst);
  void emit_transfer(const std::string& name, int src, int dst, size_t bytes);
  void emit_call(int i, bool forward, std::vector<int> reads, std::vector<int> writes);
  /// One contribution less refers to a gradient buffer; true if it was the last, so that the buffer may be
  /// overwritten.
  bool release(int buffer) { return --owners_[buffer] == 0; }

  Plan& plan_;
  const Graph& graph_;
  const ParameterLayout& layout_;
  std::span<const Head> heads_;
  std::span<Ops* const> ops_;
  std::span<const int> slots_;
  Collective* replicas_;
  Phase phase_ = Phase::forward;
  std::vector<NodeState> states_;
  std::vector<Value> values_;
  std::map<std::tuple<ValueRef, Layout, int>, int> values_in_;
  std::vector<LossPoint> loss_points_;
  std::vector<int> targets_;    // buffers, by head
  int weights_ = -1;            // buffer of the column of weights; -1 where there is none
  std::map<int, int> owners_;   // of gradient buffers: contributions that still refer to them
  std::set<int64_t> gathered_;  // offsets of gradients that some layer has written
};

}  // namespace dtrain
