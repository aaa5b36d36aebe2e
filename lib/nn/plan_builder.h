// How a Plan comes about. Only plan.cpp uses it.
#pragma once

#include <map>
#include <span>
#include <utility>
#include <vector>

#include "nn/plan.h"

namespace dtrain {

/// Walks the graph forward and back, emitting instructions; buffers are numbers until the arena has placed
/// them.
class PlanBuilder {
 public:
  PlanBuilder(Plan& plan, const Graph& graph, const ParameterLayout& layout, std::span<const Head> heads,
              Ops& ops, Plan::Purpose purpose);
  void build();

 private:
  /// A node's output in one memory layout. Reads are by node number; `end()` stands for the losses and the
  /// outputs.
  struct Value {
    int node = 0;
    Layout layout = Layout::plain;
    int view_of = -1;  // the value whose memory this is, too
    int buffer = -1;
    int last_read = -1;
    bool read_in_backward = false;
    bool computed = false;
  };
  /// A gradient that one reader of a value gives back.
  struct Contribution {
    int buffer;
    Layout layout;
  };
  struct NodeState {
    PreparedLayer* layer = nullptr;  // null: an input, or fused into its input
    int value = -1;           // its output as its layer gives it (of a fused activation: of the layer before)
    std::vector<int> inputs;  // values, in the layouts that the layer wants
    ActivationSpec activation;
    int fused_into = -1;
    bool needs_gradient = false;
    Plan::Step* step = nullptr;
    int saved = -1;
    std::vector<Contribution> contributions;
  };
  /// Where a head's loss reads its prediction: before a final softmax or sigmoid where the loss has a form
  /// for that.
  struct LossPoint {
    int node;
    std::shared_ptr<const Loss> loss;
  };

  const GraphNode& node(int i) const { return graph_.nodes[static_cast<size_t>(i)]; }
  NodeState& state(int i) { return states_[static_cast<size_t>(i)]; }
  Value& value(int v) { return values_[static_cast<size_t>(v)]; }
  int end() const { return static_cast<int>(graph_.nodes.size()); }
  int now() const { return static_cast<int>(plan_.instructions_.size()); }
  bool training() const { return purpose_ == Plan::Purpose::training; }
  bool wants_losses() const { return purpose_ != Plan::Purpose::prediction; }
  Shape batch_shape(int i) const { return node(i).outputs[0].shape.prepended(plan_.batch_); }
  /// Of a node's output, or its gradient.
  size_t value_bytes(int i) const {
    const DType type = node(i).outputs[0].dtype;
    const size_t element = type == DType::float32 ? bytes_of(ops_.compute_type()) : bytes_of(type);
    return static_cast<size_t>(batch_shape(i).elements()) * element;
  }

  void choose_loss_points();
  void fuse_activations();
  void find_gradient_needs();
  void prepare(int i);
  int value_in(int i, Layout layout);  // the value of node i in a layout, made if it is new
  void read(int v, int reader, bool in_backward);
  void settle_views();
  int root(int v) const;

  void place_columns();
  void emit_forward(int i);
  void choose_output_buffer(int i);
  void compute(int v);  // emits the reorder that makes a value, where one does and has not yet
  void emit_losses();
  void emit_outputs();
  void emit_backward(int i);
  int gather_gradient(int i);  // the buffer of the gradient before the activation; -1 where nobody gives one
  Contribution in_layout(const Contribution& contribution, int i, Layout layout);
  void add_contribution(int v, int buffer);
  void emit_layer_backward(int i, int gradient);
  void emit_zero_gradients(int i);
  void note_ready(int i);
  void emit_reorder(int i, Layout from, Layout to, int src, int dst);

  /// Emits run(pointers of `buffers`, info), which touches these buffers and nothing else of the arena.
  void emit(std::vector<int> buffers, std::function<void(std::span<void* const>, const StepInfo&)> run);
  void emit_call(int i, bool forward, std::span<const int> buffers);
  /// One contribution less refers to a gradient buffer; true if it was the last, so that the buffer may be
  /// overwritten.
  bool release(int buffer) { return --owners_[buffer] == 0; }

  Plan& plan_;
  const Graph& graph_;
  const ParameterLayout& layout_;
  std::span<const Head> heads_;
  Ops& ops_;
  Plan::Purpose purpose_;
  std::vector<NodeState> states_;
  std::vector<Value> values_;
  std::map<std::pair<int, Layout>, int> value_of_;
  std::vector<LossPoint> loss_points_;
  std::vector<int> target_buffers_;
  std::map<int, int> owners_;  // of gradient buffers: contributions that still refer to them
};

}  // namespace dtrain
