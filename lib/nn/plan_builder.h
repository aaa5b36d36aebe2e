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
  PlanBuilder(Plan& plan, const Graph& graph, const ModelLayout& layout, std::span<const Head> heads,
              std::span<Ops* const> ops, std::span<const int> slots, const PlanOptions& options);
  void build();

 private:
  using Phase = Instruction::Phase;
  /// A node's output in one memory layout on one slot. Reads are by node number; `end()` stands for the
  /// losses and the outputs.
  struct Value {
    ValueRef of;
    Layout layout = Layout::plain;
    int slot = 0;
    int made_from = -1;  // the value that a reorder makes this one from, or that comes from another slot
    int link = -1;       // by which it comes, once it was sent
    int view_of = -1;    // the value whose memory this is, too
    int buffer = -1;
    int last_read = -1;
    bool read_in_backward = false;
    bool is_recomputed = false;  // what backward reads of it is made anew (GraphNode::recompute)
    bool computed = false;
  };
  /// A gradient that one reader of a value gives back, on the value's slot once it was received.
  struct Contribution {
    int buffer = -1;  // on the value's slot; -1: it is on its way
    Layout layout = Layout::plain;
    int link = -1;
  };
  /// A gradient of a shared parameter that is on its way to the slot of its owner.
  struct RemoteGradient {
    int link = -1;
    const ParameterSlice* slice = nullptr;
    int slot = 0;  // the owner's
  };
  struct NodeState {
    PreparedLayer* layer = nullptr;  // null: an input, or fused into its input
    std::vector<int>
        values;  // the outputs as the layer gives them (of a fused activation: the layer before's)
    std::vector<int> inputs;  // values, in the layouts that the layer wants, on the layer's slot
    ActivationSpec activation;
    int fused_into = -1;
    int added_in = -1;  // the sum that this one's layer is called in the place of, and gives
    int summand = -1;   // of a sum: the node whose layer gives it
    bool needs_gradient = false;
    bool is_recomputed = false;  // its forward is called again, ahead of its segment's backward
    int call = -1;
    std::vector<std::vector<Contribution>> contributions;  // by output
    std::vector<int> sent;                                 // values that other slots have of its outputs
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
  Collective* replicas_of(int i) const {
    return options_.replicas.empty() ? nullptr : options_.replicas[static_cast<size_t>(slot_of(i))];
  }
  int slots() const { return static_cast<int>(ops_.size()); }
  bool training() const { return plan_.key_.purpose == Plan::Purpose::training; }
  bool wants_losses() const { return plan_.key_.purpose != Plan::Purpose::prediction; }
  Shape batch_shape(ValueRef ref) const { return graph_.spec(ref).shape.prepended(plan_.batch()); }
  size_t value_bytes(ValueRef ref, int slot) const;

  void choose_loss_points();
  std::map<ValueRef, int> count_readers() const;
  void fuse_activations();
  void fuse_sums();
  /// Whether the input's layer can be called in the place of the sum that reads it, and give that.
  bool can_add(ValueRef input, int sum) const;
  void find_gradient_needs();
  void prepare(int i);
  void prepare_layer(int i);
  void note_remarks(int i, const Remarks& remarks);
  /// The value of `ref` in a layout on a slot, made if it is new.
  int value_in(ValueRef ref, Layout layout, int slot);
  int add_value(const Value& value);
  void read(int v, int reader, bool in_backward);
  void read_heads();
  void settle_views();
  int root(int v) const;
  /// Whether a node that reads the value in backward has it made anew.
  bool is_recomputed_for(int v, int reader) const;
  bool is_made_anew(int v) const {
    const Value& its = values_[static_cast<size_t>(v)];
    return its.is_recomputed && !its.read_in_backward;
  }
  /// For a reader in backward, or one that is called again ahead of it.
  void keep_or_recompute(int v, int reader);
  void plan_recomputing();
  void recompute_segment(int i);
  void recompute(int i);
  void reread(int i);
  void emit_all();
  void place_buffers(int slot);

  int add_buffer(std::string name, int slot, size_t bytes);
  std::string value_name(ValueRef ref) const;
  void touch(int buffer, int time);
  void keep_to_the_end(int buffer);
  void place_columns();
  int place_column(const TensorSpec& spec, const std::string& name, int slot, size_t bytes);
  void send_weights_column();
  void send_parameters();
  /// Where node i finds its parameters, for one call.
  std::vector<ParameterPlace> parameter_places(int i);
  /// The k-th; received on its slot where it is another one's.
  ParameterPlace parameter_place(int i, int index);
  std::vector<ParameterPlace> gather_parameters(int i);
  void emit_gather(int i);
  /// The node whose parameters are wanted next; -1 where there is none.
  int next_to_gather(int i) const;
  void plan_buckets();
  GradientPlace bucket_place(const ParameterSlice& slice);
  bool is_bucket(int buffer) const;
  void reduce_ready(int64_t end);
  void emit_forward(int i);
  int addend_of(int sum);
  void choose_output_buffer(int i, size_t output);
  /// Emits the reorder that makes a value, or its receiving, where one has to and has not yet.
  void compute(int v);
  /// Emits the sending of what a node's outputs are read for on other slots.
  void send_outputs(int i);
  void emit_head(size_t h, size_t first_total);
  void emit_metrics(size_t h, int weights, size_t first_total);
  /// The weights on a slot; -1 where there are none.
  int weights_on(int slot);
  int64_t rows_per_weight(size_t h) const;
  void emit_sum_of_weights(size_t h, int weights, size_t first_total);
  void emit_outputs();

  void emit_backward(int i);
  /// The buffer of the gradient of an output before the activation; -1 where nobody gives one. Into `bias`
  /// goes its sum over the rows.
  int gather_gradient(int i, size_t output, const GradientPlace& bias);
  void emit_bias_gradient(int i, int gradient, const GradientPlace& bias);
  int reorder_gradient(ValueRef ref, int slot, Layout from, Layout to, int src);
  int bring(const Contribution& contribution, const Value& to);
  void add_contribution(int v, int buffer);
  void emit_layer_backward(int i, const std::vector<int>& gradients, std::vector<GradientPlace> places);
  const ParameterLayout& layout_of(int i) const { return layout_.on(layout_.owner_slot(i)); }
  const ParameterSlice& slice_of(int i, size_t index) const {
    return layout_of(i).slice(i, static_cast<int>(index));
  }
  bool has_gradient(int i, const ParameterSlice& slice) const {
    return slice.offset < layout_of(i).with_gradient();
  }
  /// Of all parameters; nothing is wanted where none moves.
  std::vector<GradientPlace> gradient_places(int i);
  GradientPlace gradient_place(int i, int index);
  void add_shared_gradients(int i);
  /// Where the gradient of one of the slot's own parameters belongs.
  GradientPlace own_place(const ParameterSlice& slice) {
    return options_.reduces_gradients ? bucket_place(slice) : GradientPlace{.offset = slice.offset};
  }
  void add_shared_gradient(int slot, const ParameterSlice& slice, int buffer);
  void add_remote_gradients();
  void emit_zero_gradients(int i);
  void note_ready(int i);

  void emit(int slot, std::string name, std::vector<int> reads, std::vector<int> writes,
            std::function<void(Frame&)> call);
  void emit_reorder(ValueRef ref, int slot, Layout from, Layout to, int src, int dst);
  int add_link(int from, int to, size_t bytes, Link::Keeping keeping);
  static void add_parameters(const LayerCall& call, std::vector<int>& reads);
  /// The sending of a buffer to another slot; gives the link.
  int emit_send(const std::string& name, int src, int to);
  int emit_receive(const std::string& name, int link, int slot, size_t bytes);
  void emit_call(int i, bool forward, std::vector<int> reads, std::vector<int> writes);
  /// One contribution less refers to a gradient buffer; true if it was the last, so that the buffer may be
  /// overwritten.
  bool release(int buffer) { return --owners_[buffer] == 0; }

  Plan& plan_;
  const Graph& graph_;
  const ModelLayout& layout_;
  std::span<const Head> heads_;
  std::span<Ops* const> ops_;
  std::span<const int> slots_;
  const PlanOptions options_;
  Phase phase_ = Phase::forward;
  std::vector<NodeState> states_;
  std::vector<Value> values_;
  std::map<std::tuple<ValueRef, Layout, int>, int> values_in_;
  std::vector<LossPoint> loss_points_;
  std::vector<int> targets_;                  // buffers, by head
  int weights_ = -1;                          // buffer of the column of weights; -1 where there is none
  std::map<int, int> weights_links_;          // by the slot that it was sent to
  std::map<int, int> weights_buffers_;        // by slot
  std::map<int, int> owners_;                 // of gradient buffers: contributions that still refer to them
  std::set<const ParameterSlice*> gathered_;  // whose gradients some layer has written
  std::vector<RemoteGradient> remote_gradients_;
  /// Parameters that have been gathered, or are on their way.
  struct Gathered {
    Range range;
    int buffer = -1, weights = -1;
  };
  std::map<int, std::vector<Gathered>> on_their_way_;  // by node
  /// Gradients that are reduced together.
  struct Bucket {
    Range range;      // of the layout
    int64_t end = 0;  // of its last parameter
    int buffer = -1;  // once it is needed
  };
  std::vector<Bucket> buckets_;               // in the layout's order, that of the statistics last
  size_t reduced_ = 0;                        // buckets
  std::set<std::pair<int, int>> recomputed_;  // segments, by slot
  bool recomputing_ = false;
  std::map<std::pair<const ParameterSlice*, int>, int> parameter_links_;  // by the slot that reads it
  std::map<std::pair<const ParameterSlice*, int>, ParameterPlace> parameter_places_;
};

}  // namespace dtrain
