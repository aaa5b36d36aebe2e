#include "ops/cuda/attention/dnn_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "ops/cuda/attention/attention_masks.h"

namespace dtrain::cuda {
namespace {

using Direction = DnnAttention::Direction;
using Extents = std::vector<int64_t>;

/// The oldest version of cuDNN whose attention is used. Earlier versions have bugs that need workarounds (for
/// example, if the number of keys is not a multiple of 128). cudnn-frontend contains these workarounds, but
/// this code does not.
constexpr size_t kOldestVersion = 91600;

// Tensor ids of the arrays of a call. Virtual tensors have ids from kFirstVirtual on.
enum Id : int64_t {
  kQuery = 1,
  kKey,
  kValue,
  kBias,
  kDst,
  kLogsumexp,
  kDiffDst,
  kDots,
  kQuerySums,
  kDiffQuery,
  kDiffKey,
  kDiffValue,
  // The following tensors are scalars, which are passed by value.
  kScale,
  kHidden,
  kOne,
  kFirstVirtual = 100
};

/// Builds the operation graph of a pass, and owns its descriptors. The axes of a tensor are always in the
/// order samples, heads, positions, columns, which cuDNN requires; the strides describe the order in memory.
class AttentionGraph {
 public:
  AttentionGraph(const GpuMath& math, const AttentionSpec& spec) : s_(spec), type_(dnn_type(math.type)) {}

  void add_forward() {
    const auto query = rows(kQuery, s_.heads, s_.queries, s_.key_dim, s_.query_step());
    const auto key = transposed(kKey, s_.keys, s_.key_dim, s_.key_step());
    const auto value = rows(kValue, s_.kv_heads, s_.keys, s_.value_dim, s_.value_step());
    const auto dst = rows(kDst, s_.heads, s_.queries, s_.value_dim, s_.heads * s_.value_dim);
    const Tensor scores = hide_later_keys(biased_scores(query, key, value_of(kScale)));
    const Tensor largest = per_query(), shifted = weights(), exponentials = weights(), sum = per_query();
    reduce(CUDNN_REDUCE_TENSOR_MAX, scores, largest);
    pointwise(CUDNN_POINTWISE_SUB, scores, largest, shifted);
    pointwise(CUDNN_POINTWISE_EXP, shifted, exponentials);
    reduce(CUDNN_REDUCE_TENSOR_ADD, exponentials, sum);
    // In inference, the logarithm is not needed. It is part of the graph because cuDNN does not recognize the
    // graph without it.
    const Tensor logarithm = per_query();
    pointwise(CUDNN_POINTWISE_LOG, sum, logarithm);
    pointwise(CUDNN_POINTWISE_ADD, largest, logarithm, per_query(kLogsumexp));
    const Tensor probabilities = weights(type_);
    pointwise(CUDNN_POINTWISE_DIV, exponentials, sum, probabilities);
    multiply(probabilities, value, dst);
  }

  void add_backward() {
    const auto query = rows(kQuery, s_.heads, s_.queries, s_.key_dim, s_.query_step());
    const auto key = transposed(kKey, s_.keys, s_.key_dim, s_.key_step());
    const auto value = transposed(kValue, s_.keys, s_.value_dim, s_.value_step());
    const int64_t dst_step = s_.heads * s_.value_dim;
    const auto dst = rows(kDst, s_.heads, s_.queries, s_.value_dim, dst_step);
    const auto diff_dst = rows(kDiffDst, s_.heads, s_.queries, s_.value_dim, dst_step);
    const Tensor scale = value_of(kScale);

    const Tensor dots = per_query(kDots);
    add_dots(dst, diff_dst, dots);
    const Tensor shifted = weights(), probabilities = weights();
    pointwise(CUDNN_POINTWISE_SUB, biased_scores(query, key, scale), per_query(kLogsumexp), shifted);
    pointwise(CUDNN_POINTWISE_EXP, hide_later_keys(shifted), probabilities);
    add_gradient_of_keys(probabilities, diff_dst, kDiffValue, s_.value_dim, s_.value_step());

    const Tensor diff = weights(), centered = weights(), products = weights(), diff_scores = weights(type_);
    multiply(diff_dst, value, diff);
    pointwise(CUDNN_POINTWISE_SUB, diff, dots, centered);
    pointwise(CUDNN_POINTWISE_MUL, centered, probabilities, products);
    pointwise(CUDNN_POINTWISE_MUL, products, scale, diff_scores);
    add_gradient_of_keys(diff_scores, query, kDiffKey, s_.key_dim, s_.key_step());

    const Tensor key_rows = tensor(kVirtual, type_, {s_.batch, s_.kv_heads, s_.keys, s_.key_dim},
                                   row_strides(s_.keys, s_.key_dim, s_.key_step()));
    reshape(key, key_rows);
    // These sums are float32, so cuDNN can add the contributions of the tiles to them directly. If the result
    // had the compute type, cuDNN would store a whole matrix of [queries, keys].
    const Tensor sums = tensor(kQuerySums, CUDNN_DATA_FLOAT, {s_.batch, s_.heads, s_.queries, s_.key_dim},
                               {s_.heads * s_.queries * s_.key_dim, s_.queries * s_.key_dim, s_.key_dim, 1});
    multiply(diff_scores, key_rows, sums);
    pointwise(CUDNN_POINTWISE_IDENTITY, sums,
              rows(kDiffQuery, s_.heads, s_.queries, s_.key_dim, s_.query_step()));
  }

  /// Returns null if cuDNN does not support the graph.
  DnnDescriptor finish(const DnnDevice& device) const {
    return supported_ ? dnn_graph(device, operations_) : nullptr;
  }

 private:
  using Tensor = const DnnDescriptor*;
  static constexpr int64_t kVirtual = -1;

  Tensor keep(DnnDescriptor descriptor) {
    parts_.push_back(std::make_unique<DnnDescriptor>(std::move(descriptor)));
    return parts_.back().get();
  }

  Tensor tensor(int64_t id, cudnnDataType_t type, const Extents& extents, const Extents& strides,
                bool by_value = false) {
    return keep(DnnDescription(CUDNN_BACKEND_TENSOR_DESCRIPTOR)
                    .set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id == kVirtual ? next_virtual_++ : id)
                    .set(CUDNN_ATTR_TENSOR_DATA_TYPE, type)
                    .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, int64_t{by_value ? 4 : 16})
                    .set(CUDNN_ATTR_TENSOR_DIMENSIONS, extents)
                    .set(CUDNN_ATTR_TENSOR_STRIDES, strides)
                    .set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, id == kVirtual)
                    .set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, by_value)
                    .finish());
  }
  static Extents row_strides(int64_t positions, int64_t columns, int64_t step) {
    return {positions * step, columns, step, 1};
  }
  Tensor rows(Id id, int64_t heads, int64_t positions, int64_t columns, int64_t step) {
    return tensor(id, type_, {s_.batch, heads, positions, columns}, row_strides(positions, columns, step));
  }
  /// Returns keys or values with their last two axes exchanged.
  Tensor transposed(Id id, int64_t positions, int64_t columns, int64_t step) {
    return tensor(id, type_, {s_.batch, s_.kv_heads, columns, positions},
                  {positions * step, columns, 1, step});
  }
  /// Returns a virtual array with an element for each query and key.
  Tensor weights(cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    const int64_t all = s_.queries * s_.keys;
    return tensor(kVirtual, type, {s_.batch, s_.heads, s_.queries, s_.keys},
                  {s_.heads * all, all, s_.keys, 1});
  }
  Tensor per_query(int64_t id = kVirtual) {
    return tensor(id, CUDNN_DATA_FLOAT, {s_.batch, s_.heads, s_.queries, 1},
                  {s_.heads * s_.queries, s_.queries, 1, 1});
  }
  Tensor value_of(Id id) { return tensor(id, CUDNN_DATA_FLOAT, {1, 1, 1, 1}, {1, 1, 1, 1}, true); }

  void add(DnnDescription& operation) {
    operations_.push_back(operation.finish_if_supported());
    supported_ = supported_ && operations_.back();
  }
  void multiply(Tensor a, Tensor b, Tensor c) {
    const Tensor product = keep(DnnDescription(CUDNN_BACKEND_MATMUL_DESCRIPTOR)
                                    .set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT)
                                    .finish());
    add(DnnDescription(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR)
            .set(CUDNN_ATTR_OPERATION_MATMUL_DESC, *product)
            .set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, *a)
            .set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, *b)
            .set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, *c));
  }
  void reduce(cudnnReduceTensorOp_t operation, Tensor x, Tensor y) {
    const Tensor reduction = keep(DnnDescription(CUDNN_BACKEND_REDUCTION_DESCRIPTOR)
                                      .set(CUDNN_ATTR_REDUCTION_OPERATOR, operation)
                                      .set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT)
                                      .finish());
    add(DnnDescription(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR)
            .set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, *reduction)
            .set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, *x)
            .set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, *y));
  }
  void reshape(Tensor x, Tensor y) {
    add(DnnDescription(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR)
            .set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, *x)
            .set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, *y));
  }
  /// Sets y = mode(x, b). If `condition` is given, y is x where `condition` is true and b where it is false.
  /// `b` and `condition` may be null if the mode does not need them.
  void elementwise(DnnDescription& mode, Tensor x, Tensor b, Tensor condition, Tensor y) {
    const Tensor own = keep(mode.finish());
    DnnDescription operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, *own)
        .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, *x)
        .set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, *y);
    if (b) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *b);
    if (condition) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, *condition);
    add(operation);
  }
  static DnnDescription in_type(cudnnPointwiseMode_t mode, cudnnDataType_t type) {
    DnnDescription description(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    description.set(CUDNN_ATTR_POINTWISE_MODE, mode).set(CUDNN_ATTR_POINTWISE_MATH_PREC, type);
    return description;
  }
  void pointwise(cudnnPointwiseMode_t mode, Tensor x, Tensor y) { pointwise(mode, x, nullptr, y); }
  void pointwise(cudnnPointwiseMode_t mode, Tensor x, Tensor b, Tensor y) {
    DnnDescription description = in_type(mode, CUDNN_DATA_FLOAT);
    elementwise(description, x, b, nullptr, y);
  }

  /// Returns query key^T * scale, plus the bias.
  Tensor biased_scores(Tensor query, Tensor key, Tensor scale) {
    const Tensor products = weights(), scaled = weights();
    multiply(query, key, products);
    pointwise(CUDNN_POINTWISE_MUL, products, scale, scaled);
    if (!s_.masked) return scaled;
    const Tensor biased = weights();
    const int64_t stride = bias_stride(s_);
    pointwise(CUDNN_POINTWISE_ADD, scaled,
              tensor(kBias, type_, {s_.batch, 1, 1, s_.keys}, {stride, stride, stride, 1}), biased);
    return biased;
  }

  /// If the attention is causal, replaces the scores of keys that come after the query by the number kHidden.
  Tensor hide_later_keys(Tensor scores) {
    if (!s_.causal) return scores;
    const Tensor row = weights(CUDNN_DATA_INT32), column = weights(CUDNN_DATA_INT32),
                 visible = weights(CUDNN_DATA_BOOLEAN), hidden = weights();
    const auto index = [&](int64_t axis, Tensor y) {
      DnnDescription description = in_type(CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_INT32);
      description.set(CUDNN_ATTR_POINTWISE_AXIS, axis);
      elementwise(description, scores, nullptr, nullptr, y);
    };
    index(2, row);
    index(3, column);
    DnnDescription compare = in_type(CUDNN_POINTWISE_CMP_GE, CUDNN_DATA_BOOLEAN);
    elementwise(compare, row, column, nullptr, visible);
    DnnDescription select = in_type(CUDNN_POINTWISE_BINARY_SELECT, CUDNN_DATA_FLOAT);
    elementwise(select, scores, value_of(kHidden), visible, hidden);
    return hidden;
  }

  /// Appends an operation that computes the dot products of the rows of dst and diff_dst. cuDNN expects a
  /// multiplication by a factor that undoes dropout. There is no dropout here, so this factor is 1.
  void add_dots(Tensor dst, Tensor diff_dst, Tensor dots) {
    const int64_t all = s_.queries * s_.value_dim;
    const Tensor products = tensor(kVirtual, CUDNN_DATA_FLOAT, {s_.batch, s_.heads, s_.queries, s_.value_dim},
                                   {s_.heads * all, all, s_.heads * s_.value_dim, 1});
    const Tensor sums = per_query();
    pointwise(CUDNN_POINTWISE_MUL, diff_dst, dst, products);
    reduce(CUDNN_REDUCE_TENSOR_ADD, products, sums);
    pointwise(CUDNN_POINTWISE_MUL, sums, value_of(kOne), dots);
  }

  /// Appends a matrix product whose result is the gradient of the keys or values: the transposed weights
  /// times rows_of_queries. The gradient is summed over the query heads that share the same keys and values.
  void add_gradient_of_keys(Tensor weights, Tensor rows_of_queries, Id id, int64_t columns, int64_t step) {
    const int64_t all = s_.queries * s_.keys;
    const Tensor turned =
        tensor(kVirtual, type_, {s_.batch, s_.heads, s_.keys, s_.queries}, {s_.heads * all, all, 1, s_.keys});
    reshape(weights, turned);
    const Tensor gradient = rows(id, s_.kv_heads, s_.keys, columns, step);
    if (s_.group() == 1) return multiply(turned, rows_of_queries, gradient);
    const Tensor of_heads = tensor(kVirtual, type_, {s_.batch, s_.heads, s_.keys, columns},
                                   {s_.heads * s_.keys * columns, s_.keys * columns, columns, 1});
    multiply(turned, rows_of_queries, of_heads);
    reduce(CUDNN_REDUCE_TENSOR_ADD, of_heads, gradient);
  }

  AttentionSpec s_;
  cudnnDataType_t type_;
  int64_t next_virtual_ = kFirstVirtual;
  bool supported_ = true;
  std::vector<std::unique_ptr<DnnDescriptor>> parts_;
  std::vector<DnnDescriptor> operations_;
};

/// Returns true if cuDNN may compute this pass. cuDNN's dropout cannot be used, because its random numbers
/// differ from those of AttentionDropout.
bool suits(const DnnDevice& device, const GpuMath& math, const AttentionSpec& spec, Direction direction) {
  if (math.type != DType::bfloat16 && math.type != DType::float16) return false;
  if (spec.dropout > 0.0f || (spec.causal && spec.first_query != 0)) return false;
  for (const int64_t elements :
       {spec.key_dim, spec.value_dim, spec.query_step(), spec.key_step(), spec.value_step()})
    if (elements % 8 != 0) return false;  // rows are not aligned to 16 bytes
  if (direction == Direction::backward && math.deterministic) return false;
  return DnnAttention::is_reliable(spec, direction, device.capability(), cudnnGetVersion());
}

}  // namespace

bool DnnAttention::is_reliable(const AttentionSpec& spec, Direction direction, int capability,
                               size_t version) {
  if (version < kOldestVersion) return false;
  // Plans for larger batches fail when they are executed.
  if (spec.batch > 65535 || spec.heads > 65535) return false;
  // cuDNN's release notes list both cases under known issues.
  if (spec.keys == 1) return false;
  if (spec.queries == 1 && spec.causal && spec.group() != 1) return false;
  if (direction == Direction::forward) {
    // The kernels for a single query return wrong results (PyTorch issue 193893).
    const bool wrong = version >= 91900 && version <= 92500 && version != 92401;
    return !(spec.queries == 1 && wrong && (capability / 10 == 10 || capability / 10 == 11));
  }
  // The gradients of keys and values can be NaN (cudnn-frontend issue 1072).
  if (spec.queries == 1) return false;
  if (capability != 90) return true;
  // In the last tile, 64 keys that do not exist get the score 0. If all scores of a query are very low, the
  // gradient of the query is then NaN (cudnn-frontend pull request 628). Causal attention hides these keys.
  if (version < 92600 && spec.keys % 128 == 64 && (!spec.causal || spec.queries > spec.keys)) return false;
  // PyTorch uses heads of more than 128 columns only with later versions.
  return version > 92200 || std::max(spec.key_dim, spec.value_dim) <= 128;
}

size_t DnnAttention::most_workspace(const AttentionSpec& spec) {
  const int64_t positions = spec.queries + spec.keys, columns = std::max(spec.key_dim, spec.value_dim);
  // This is enough for four float32 copies of all queries and keys, even if there are as many key heads as
  // query heads.
  return (size_t{1} << 20) + static_cast<size_t>(spec.batch * spec.heads * positions * columns) * 16;
}

std::optional<DnnAttention> DnnAttention::find(const DnnDevice& device, const GpuMath& math,
                                               const AttentionSpec& spec, Direction direction) {
  if (!suits(device, math, spec, direction)) return std::nullopt;
  AttentionGraph graph(math, spec);
  if (direction == Direction::forward) {
    graph.add_forward();
  } else {
    graph.add_backward();
  }
  const DnnDescriptor descriptor = graph.finish(device);
  if (!descriptor) return std::nullopt;
  auto plan = find_plan(device, math, descriptor, most_workspace(spec));
  if (!plan) return std::nullopt;
  return DnnAttention(std::move(*plan), spec, direction);
}

void DnnAttention::run(cudnnHandle_t handle, const DnnAttentionArrays& arrays, void* workspace) const {
  const float scale = 1.0f / std::sqrt(static_cast<float>(spec_.key_dim));
  const float hidden = -std::numeric_limits<float>::infinity(), one = 1.0f;
  std::vector<int64_t> ids = {kQuery, kKey, kValue, kDst, kLogsumexp, kScale};
  std::vector<const void*> pointers = {arrays.query, arrays.key,       arrays.value,
                                       arrays.dst,   arrays.logsumexp, &scale};
  const auto add = [&](Id id, const void* pointer) {
    ids.push_back(id);
    pointers.push_back(pointer);
  };
  if (spec_.masked) add(kBias, arrays.bias);
  if (spec_.causal) add(kHidden, &hidden);
  if (direction_ == Direction::backward) {
    add(kDiffDst, arrays.diff_dst);
    add(kDots, arrays.dots);
    add(kQuerySums, arrays.query_sums);
    add(kDiffQuery, arrays.diff_query);
    add(kDiffKey, arrays.diff_key);
    add(kDiffValue, arrays.diff_value);
    add(kOne, &one);
  }
  plan_.run(handle, ids, pointers, workspace, "attention");
}

}  // namespace dtrain::cuda
