// The operator Attention.
#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "interop/onnx/operators.h"

namespace dtrain {

namespace {

/// Gives access to the rows of an array [batch, positions, heads * dim]. A row contains the elements of one
/// head at one position.
struct HeadRows {
  const OnnxArray& array;
  int64_t heads;

  int64_t positions() const { return array.shape[1]; }
  int64_t dim() const { return array.shape[2] / heads; }
  const float* row(int64_t sample, int64_t position, int64_t head) const {
    return array.values.data() + (sample * positions() + position) * array.shape[2] + head * dim();
  }
};

/// Computes the softmax of the scores in place.
void softmax_of(std::vector<double>& scores) {
  const double most = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (double& score : scores) sum += score = std::exp(score - most);
  for (double& score : scores) score /= sum;
}

/// Computes the attention of inputs with three axes. A mask must have finite numbers and the shape [batch, 1,
/// queries, keys].
OnnxArray attention(const OnnxCall& call) {
  const HeadRows queries{call.input(0), call.integer("q_num_heads", 1)};
  const HeadRows keys{call.input(1), call.integer("kv_num_heads", 1)};
  const HeadRows values{call.input(2), keys.heads};
  const int64_t samples = queries.array.shape[0], q = queries.positions(), k = keys.positions();
  if (queries.array.shape.rank() != 3 || queries.heads % keys.heads != 0 || queries.dim() != keys.dim())
    throw std::logic_error(
        "the check of ONNX models supports Attention only for inputs of shape [batch, positions, heads * "
        "dim]; queries and keys must have the same dim, and q_num_heads must be a multiple of kv_num_heads");
  if (call.has_input(3) && call.input(3).shape != Shape{samples, 1, q, k})
    throw std::logic_error(
        "the check of ONNX models supports Attention only with a mask of shape [batch, 1, queries, keys]");
  const bool is_causal = call.integer("is_causal", 0) != 0;
  const double scale = 1 / std::sqrt(static_cast<double>(queries.dim()));
  OnnxArray result(Shape{samples, q, queries.heads * values.dim()});
  float* y = result.values.data();
  std::vector<double> weights(static_cast<size_t>(k));
  for (int64_t n = 0; n < samples; ++n)
    for (int64_t i = 0; i < q; ++i)
      for (int64_t head = 0; head < queries.heads; ++head, y += values.dim()) {
        const int64_t shared = head / (queries.heads / keys.heads);
        const float* const query = queries.row(n, i, head);
        for (int64_t j = 0; j < k; ++j) {
          const float* const key = keys.row(n, j, shared);
          double score = 0;
          for (int64_t d = 0; d < keys.dim(); ++d)
            score += static_cast<double>(query[d]) * static_cast<double>(key[d]);
          score *= scale;
          if (call.has_input(3))
            score += static_cast<double>(call.input(3).values[static_cast<size_t>((n * q + i) * k + j)]);
          weights[static_cast<size_t>(j)] =
              is_causal && j > i ? -std::numeric_limits<double>::infinity() : score;
        }
        softmax_of(weights);
        for (int64_t d = 0; d < values.dim(); ++d) {
          double sum = 0;
          for (int64_t j = 0; j < k; ++j)
            sum += weights[static_cast<size_t>(j)] * static_cast<double>(values.row(n, j, shared)[d]);
          y[d] = static_cast<float>(sum);
        }
      }
  return result;
}

}  // namespace

void add_onnx_attention(std::vector<std::pair<std::string, OnnxOperator>>& table) {
  table.emplace_back("Attention", attention);
}

}  // namespace dtrain
