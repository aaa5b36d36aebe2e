#include "nn/shorter_model.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace dtrain {

namespace {

/// If the first extent of the shape is `before`, replaces it by `after`. Other shapes are returned unchanged.
Shape with_positions(Shape shape, int64_t before, int64_t after) {
  if (shape.rank() > 0 && shape[0] == before) shape[0] = after;
  return shape;
}

/// Makes a copy of a model with fewer positions. The nodes are changed one after the other.
class Shortening {
 public:
  Shortening(const Graph& whole, const PaddedSequences& sequences, int64_t length)
      : whole_(whole), positions_(sequences.positions), length_(length), graph_(whole) {
    for (const PaddedSequences::Input& input : sequences.inputs)
      node(whole.inputs[input.index]).outputs[0].shape[0] = length;
  }

  Graph build() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i)
      if (graph_.nodes[i].layer && reads_sequence(graph_.nodes[i])) shorten(static_cast<int>(i));
    return std::move(graph_);
  }

 private:
  GraphNode& node(int i) { return graph_.nodes[static_cast<size_t>(i)]; }
  bool is_shorter(ValueRef value) const { return graph_.spec(value).shape != whole_.spec(value).shape; }
  bool reads_sequence(const GraphNode& node) const {
    return std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueRef v) { return is_shorter(v); });
  }

  [[noreturn]] void fail(int i, const std::string& why) const {
    const auto at = static_cast<size_t>(i);
    const GraphNode& its = whole_.nodes[whole_.nodes[at].is_activation_of_previous ? at - 1 : at];
    throw LengthError(
        its.mark, fmt::format("{} '{}' {}, so the model cannot compute batches of fewer than {} positions; "
                              "change the layer, or remove dataset.batches.bucket_by_length",
                              its.kind, its.name, why, positions_));
  }

  /// Checks that positions of padding have no influence on the valid positions of the layer's outputs.
  void check_masks(int i, const GraphNode& its) const {
    // If the layer creates the mask of a model input, padded_sequences() has already found the padding of
    // this input.
    if (its.layer->creates_mask()) {
      if (whole_.nodes[static_cast<size_t>(its.inputs[0].node)].layer)
        fail(i, "masks values that are not an input of the model");
      return;
    }
    if (its.ignores_mask) fail(i, "treats padding as data because of ignore_mask");
    for (const ValueRef input : its.inputs)
      if (is_shorter(input) && whole_.mask_of(input) == ValueRef())
        fail(i, fmt::format("reads '{}', which has no mask of its padding", whole_.value_name(input)));
    if (its.layer->mask_rule() == MaskRule::passed && !its.layer->is_by_position())
      fail(i, "computes each position from all positions, including padding");
  }

  /// Checks that the layer has no activity penalty on outputs with an axis of positions. Such a penalty would
  /// include padding, so it would change if the padding were cut off.
  void check_penalty(int i) const {
    const GraphNode& its = graph_.nodes[static_cast<size_t>(i)];
    if (!its.activity_penalty()) return;
    for (int k = 0; k < static_cast<int>(its.readable_outputs()); ++k)
      if (is_shorter({i, k})) fail(i, "has an activity_regularizer, which also counts padding");
  }

  void shorten(int i) {
    GraphNode& its = node(i);
    check_masks(i, its);
    std::vector<TensorSpec> inputs;
    for (const ValueRef input : its.inputs) inputs.push_back(graph_.spec(input));
    std::string why;
    const std::vector<TensorSpec> outputs =
        its.layer->infer(inputs, [&](const std::string& message) { why = message; });
    if (!why.empty()) fail(i, fmt::format("does not accept {} positions ({})", length_, why));
    if (!its.keeps_parameters(inputs)) fail(i, "has separate parameters for each position");
    for (size_t k = 0; k < outputs.size(); ++k) {
      Shape& shape = its.outputs[k].shape;
      if (outputs[k].shape != shape && outputs[k].shape != with_positions(shape, positions_, length_))
        fail(i, fmt::format("gives an output of shape {} if its input has {} positions, and an output of "
                            "shape {} if its input has "
                            "{} positions",
                            shape.str(), positions_, outputs[k].shape.str(), length_));
      shape = outputs[k].shape;
    }
    check_penalty(i);
  }

  const Graph& whole_;
  const int64_t positions_, length_;
  Graph graph_;
};

/// Returns the head of an output of the shortened model. If the output has fewer positions than before, the
/// target, the mask and the weights also have fewer positions.
Head shorter_head(const Head& whole, const Graph& before, const Graph& after) {
  Head head = whole;
  const Shape &old = before.spec(head.output).shape, &now = after.spec(head.output).shape;
  if (old == now) return head;
  const auto fail = [&](const std::string& why) {
    throw LengthError(
        before.nodes[static_cast<size_t>(head.output.node)].mark,
        fmt::format(
            "the output '{}' has an axis of positions ({}), so dataset.batches.bucket_by_length requires {}",
            before.value_name(head.output), why,
            head.mask ? "a target for each position" : "a mask of the output's padding"));
  };
  if (!head.mask) fail("but no mask");
  head.mask->shape = after.spec(head.mask->value).shape;
  if (head.target.shape.rank() == 0 || head.target.shape[0] != old[0])
    fail(fmt::format("but its target has the shape {}", head.target.shape.str()));
  head.target.shape[0] = now[0];
  if (head.weights) head.weights->shape = with_positions(head.weights->shape, old[0], now[0]);
  return head;
}

}  // namespace

PaddedSequences padded_sequences(const Graph& graph) {
  PaddedSequences found;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const Shape& shape = graph.spec({graph.inputs[i]}).shape;
    for (const GraphNode& node : graph.nodes) {
      if (!node.layer || !node.layer->creates_mask() || node.inputs[0] != ValueRef{graph.inputs[i]}) continue;
      // A mask with one element per sample does not mark positions.
      if (node.outputs.back().shape.rank() == 0) continue;
      if (!found.inputs.empty() && shape[0] != found.positions)
        throw LengthError({},
                          fmt::format("batches: bucket_by_length needs sequences that are padded to the same "
                                      "length, but the input '{}' has {} positions and another input has {}",
                                      graph.value_name({graph.inputs[i]}), shape[0], found.positions));
      found.positions = shape[0];
      found.inputs.push_back({i, *node.layer->padding()});
    }
  }
  if (found.inputs.empty())
    throw LengthError({},
                      "batches: bucket_by_length needs a mask of the padding, which gives the lengths of the "
                      "sequences, but the model has no such mask; set `mask_zero: true` in an embedding that "
                      "reads an input of the model, or add a `masking` layer that reads an input");
  return found;
}

ShorterModel shorter_model(const Graph& graph, std::span<const Head> heads, int64_t length) {
  ShorterModel model{Shortening(graph, padded_sequences(graph), length).build(), {}};
  for (const Head& head : heads) model.heads.push_back(shorter_head(head, graph, model.graph));
  return model;
}

}  // namespace dtrain
