// Conversion of multi_head_attention to ONNX operators.
#include <cmath>

#include <fmt/format.h>

#include "interop/layers/attention.h"
#include "interop/layers/operators.h"
#include "interop/onnx/builder.h"
#include "ops/math/positions.h"

namespace dtrain {

namespace {

/// the first ONNX operator set that contains the operator Attention
constexpr int64_t kFirstWithAttention = 23;

/// The score of a key that is hidden from a query. float16 can represent this score, and its exponential is
/// 0.
constexpr float kHidden = -6e4f;

/// Returns the values of a key or value parameter, [rows, kv_heads, dim], as [rows, heads, dim]. Each head is
/// repeated for all query heads that share it.
std::vector<float> repeated_heads(std::span<const float> values, const Heads& heads, int64_t dim) {
  std::vector<float> result;
  for (size_t head = 0; head < values.size(); head += static_cast<size_t>(dim))
    for (int64_t i = 0; i < heads.group(); ++i)
      result.insert(result.end(), values.begin() + static_cast<ptrdiff_t>(head),
                    values.begin() + static_cast<ptrdiff_t>(head) + dim);
  return result;
}

/// Adds a node that multiplies an input by a kernel. Returns the product, an array [batch, positions, count *
/// dim]. If `count` is greater than the number of the kernel's heads, each head is repeated for all query
/// heads that share it.
std::string onnx_product(OnnxLayer& layer, size_t input, const std::string& name, const Heads& heads,
                         int64_t count, int64_t dim) {
  const int64_t features = layer.input_spec(input).shape[1], width = count * dim;
  const bool repeats = name != "query" && count != heads.kv_heads;
  const auto parameter = [&](const std::string& of, const Shape& shape) {
    if (!repeats) return layer.parameter(of, {}, shape);
    return layer.array(name + (shape.rank() == 1 ? "_bias" : "_kernel"), shape,
                       repeated_heads(layer.values(of), heads, dim));
  };
  const std::string y = layer.add("MatMul", {layer.input(input, ExportLayout::channels_last),
                                             parameter(name + "/kernel", {features, width})});
  return layer.has_parameter(name + "/bias") ? layer.add("Add", {y, parameter(name + "/bias", {width})}) : y;
}

/// Adds the rotation of x, [batch, positions, heads, dim], by rotary positions: x * cosines + y * sines. y is
/// x with its two halves exchanged. The sines for the first half are negative.
std::string onnx_rotated(OnnxLayer& layer, const std::string& x, int64_t positions, int64_t dim) {
  const double base = layer.options().at("rotary").at("base").as_double();
  const RotarySpec spec{.positions = positions, .dim = dim, .base = base};
  const int64_t pairs = spec.pairs();
  std::vector<float> table(static_cast<size_t>(spec.table_floats())), cosines, sines;
  for (int64_t i = 0; i < positions * pairs; ++i) math::rotary_table_entry(spec, i, table.data());
  for (int64_t p = 0; p < positions; ++p)
    for (int64_t i = 0; i < dim; ++i) {
      const auto at = static_cast<size_t>(p * pairs + i % pairs);
      const float sine = table[static_cast<size_t>(positions * pairs) + at];
      cosines.push_back(table[at]);
      sines.push_back(i < pairs ? -sine : sine);
    }
  const auto half = [&](int64_t begin, int64_t end) {
    return layer.add("Slice", {x, layer.integers({begin}), layer.integers({end}), layer.integers({3})});
  };
  const std::string second = half(pairs, dim), first = half(0, pairs);
  const std::string exchanged = layer.add("Concat", {second, first}, {{"axis", int64_t{3}}});
  const auto times = [&](const std::string& value, const char* name, std::vector<float> factors) {
    const std::string array =
        layer.array(fmt::format("{}_{}", name, positions), {positions, 1, dim}, std::move(factors));
    return layer.add("Mul", {value, array});
  };
  return layer.add("Add",
                   {times(x, "cosines", std::move(cosines)), times(exchanged, "sines", std::move(sines))});
}

/// The inputs of the attention computation: the projected queries, keys and values, and the mask of the keys
/// (`visible`; "" if there is none).
struct OnnxAttention {
  std::string query, key, value, visible;
  int64_t queries, keys;
  bool is_causal;
};

/// Adds a constant array [queries, keys]. Its elements are `seen` for the keys that a query sees in causal
/// attention, and `hidden` for later keys.
std::string causal_array(OnnxLayer& layer, const OnnxAttention& of, const char* name, float seen,
                         float hidden) {
  std::vector<float> values;
  for (int64_t i = 0; i < of.queries; ++i)
    for (int64_t j = 0; j < of.keys; ++j) values.push_back(j > i ? hidden : seen);
  return layer.array(fmt::format("{}_{}_{}", name, of.queries, of.keys), {of.queries, of.keys},
                     std::move(values));
}

/// Adds an array that is 1 if a query sees a key, and 0 otherwise. Its shape is [batch, 1, queries, keys], or
/// [batch, 1, 1, keys] if all queries see the same keys. The attention must have a mask.
std::string visible_pairs(OnnxLayer& layer, const OnnxAttention& of) {
  const std::string visible = layer.add("Reshape", {of.visible, layer.integers({0, 1, 1, of.keys})});
  if (!of.is_causal) return visible;
  return layer.add("Mul", {visible, causal_array(layer, of, "causal_pairs", 1, 0)});
}

/// Adds the operator Attention for the products, [batch, positions, heads * dim]. Returns an array [batch,
/// queries, heads * dim]. Runtimes differ if the scores of all keys are -infinity. Therefore the scores of
/// masked keys are finite, and the output of a query that sees no key is set to 0. The mask has one row for
/// each query, because ONNX Runtime does not broadcast a single row to all queries.
std::string attention_node(OnnxLayer& layer, const Heads& heads, const OnnxAttention& of) {
  const auto node = [&](std::vector<std::string> inputs, bool is_causal) {
    return layer.add(
        "Attention", std::move(inputs),
        {{"q_num_heads", heads.heads}, {"kv_num_heads", heads.kv_heads}, {"is_causal", int64_t{is_causal}}});
  };
  if (of.visible.empty()) return node({of.query, of.key, of.value}, of.is_causal);
  std::string pairs = visible_pairs(layer, of);
  if (!of.is_causal) pairs = layer.add("Mul", {pairs, causal_array(layer, of, "pairs", 1, 1)});
  const std::string is_hidden = layer.add("LessOrEqual", {pairs, layer.constant(0)});
  const std::string mask = layer.add("Where", {is_hidden, layer.constant(kHidden), layer.constant(0)});
  const std::string sees =
      layer.add("Reshape", {onnx_row_maxima(layer, pairs), layer.integers({0, of.queries, 1})});
  return layer.add("Mul", {node({of.query, of.key, of.value, mask}, false), sees});
}

/// Adds the attention as matrix products and a softmax, for operator sets without the operator Attention. The
/// products have the shape [batch, positions, heads, dim]. Returns an array [batch, queries, heads * dim].
std::string decomposed_attention(OnnxLayer& layer, const Heads& heads, const OnnxAttention& of) {
  const auto transposed = [&](const std::string& x, std::vector<int64_t> axes) {
    return layer.add("Transpose", {x}, {{"perm", std::move(axes)}});
  };
  std::string scores =
      layer.add("MatMul", {transposed(of.query, {0, 2, 1, 3}), transposed(of.key, {0, 2, 3, 1})});
  scores = layer.add("Mul", {scores, layer.constant(1 / std::sqrt(static_cast<float>(heads.key_dim)))});
  std::string visible;
  if (!of.visible.empty()) {
    visible = visible_pairs(layer, of);
    scores = layer.add(
        "Where", {layer.add("LessOrEqual", {visible, layer.constant(0)}), layer.constant(kHidden), scores});
  } else if (of.is_causal) {
    scores = layer.add("Add", {scores, causal_array(layer, of, "causal_mask", 0, kHidden)});
  }
  std::string weights = layer.add("Softmax", {scores}, {{"axis", int64_t{-1}}});
  // The output of a query that sees no key is 0.
  if (!visible.empty()) weights = layer.add("Mul", {weights, visible});
  const std::string y =
      transposed(layer.add("MatMul", {weights, transposed(of.value, {0, 2, 1, 3})}), {0, 2, 1, 3});
  return layer.add("Reshape", {y, layer.integers({0, of.queries, heads.heads * heads.value_dim})});
}

}  // namespace

void attention_to_onnx(OnnxLayer& layer) {
  const Heads heads = heads_of(layer.node());
  const size_t key_input = layer.inputs() - 1, value_input = layer.inputs() == 1 ? 0 : 1;
  const bool is_node = layer.opset() >= kFirstWithAttention,
             has_rotary = option_is_set(layer.options(), "rotary");
  const int64_t kv_heads = is_node ? heads.kv_heads : heads.heads;
  const auto projected = [&](size_t input, const char* name, int64_t count, int64_t dim, bool rotates) {
    const std::string rows = onnx_product(layer, input, name, heads, count, dim);
    if (is_node && !rotates) return rows;
    const int64_t positions = layer.input_spec(input).shape[0];
    std::string split = layer.add("Reshape", {rows, layer.integers({0, positions, count, dim})});
    if (rotates) split = onnx_rotated(layer, split, positions, dim);
    return is_node ? layer.add("Reshape", {split, layer.integers({0, positions, count * dim})}) : split;
  };
  OnnxAttention of;
  of.query = projected(0, "query", heads.heads, heads.key_dim, has_rotary);
  of.key = projected(key_input, "key", kv_heads, heads.key_dim, has_rotary);
  of.value = projected(value_input, "value", kv_heads, heads.value_dim, false);
  of.visible = key_mask(layer);
  of.queries = layer.input_spec(0).shape[0];
  of.keys = layer.input_spec(key_input).shape[0];
  of.is_causal = option_is_set(layer.options(), "causal");
  std::string y = is_node ? attention_node(layer, heads, of) : decomposed_attention(layer, heads, of);
  const int64_t width = heads.heads * heads.value_dim, features = layer.output_spec().shape[1];
  y = layer.add("MatMul", {y, layer.parameter("attention_output/kernel", {}, {width, features})});
  if (layer.has_parameter("attention_output/bias"))
    y = layer.add("Add", {y, layer.parameter("attention_output/bias")});
  layer.set_output(y, ExportLayout::channels_last);
}

}  // namespace dtrain
