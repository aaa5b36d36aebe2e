#include "emulation/dnn_graph.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace dtrain::emulation {
namespace {

using Integers = std::vector<int64_t>;
using Values = std::vector<double>;  // elements of a tensor, in the order of its axes

int64_t count(const Integers& extents) {
  int64_t product = 1;
  for (const int64_t extent : extents) product *= extent;
  return product;
}

/// Returns the index along each axis of element `i`.
Integers index_of(int64_t i, const Integers& extents) {
  Integers index(extents.size());
  for (size_t axis = extents.size(); axis-- > 0; i /= extents[axis]) index[axis] = i % extents[axis];
  return index;
}

/// A tensor with the extents `extents` is broadcast to the extents `whole`. Returns the number of the element
/// that is at `index` after the broadcast. If an axis of the tensor has fewer elements than in `whole`, each
/// element is repeated for a group of neighboring indices.
size_t element_of(const Integers& index, const Integers& whole, const Integers& extents) {
  int64_t i = 0;
  for (size_t axis = 0; axis < extents.size(); ++axis)
    i = i * extents[axis] + index[axis] / (whole[axis] / extents[axis]);
  return static_cast<size_t>(i);
}

bool divide(const Integers& parts, const Integers& whole) {
  if (parts.size() != whole.size()) return false;
  for (size_t axis = 0; axis < whole.size(); ++axis)
    if (whole[axis] % parts[axis] != 0) return false;
  return true;
}

bool is_broadcast(const Integers& extents, const Integers& whole) {
  if (extents.size() != whole.size()) return false;
  for (size_t axis = 0; axis < whole.size(); ++axis)
    if (extents[axis] != 1 && extents[axis] != whole[axis]) return false;
  return true;
}

/// Returns the extents of the tensor with its last two axes exchanged.
Integers exchanged(Integers extents) {
  std::swap(extents[extents.size() - 1], extents[extents.size() - 2]);
  return extents;
}

size_t inputs_of(cudnnPointwiseMode_t mode) {
  switch (mode) {
    case CUDNN_POINTWISE_EXP:
    case CUDNN_POINTWISE_LOG:
    case CUDNN_POINTWISE_IDENTITY:
    case CUDNN_POINTWISE_GEN_INDEX:
      return 1;
    case CUDNN_POINTWISE_ADD:
    case CUDNN_POINTWISE_SUB:
    case CUDNN_POINTWISE_MUL:
    case CUDNN_POINTWISE_DIV:
    case CUDNN_POINTWISE_CMP_GE:
      return 2;
    case CUDNN_POINTWISE_BINARY_SELECT:
      return 3;
    default:
      return 0;
  }
}

double elementwise(cudnnPointwiseMode_t mode, const double (&x)[3]) {
  switch (mode) {
    case CUDNN_POINTWISE_EXP:
      return std::exp(x[0]);
    case CUDNN_POINTWISE_LOG:
      return std::log(x[0]);
    case CUDNN_POINTWISE_ADD:
      return x[0] + x[1];
    case CUDNN_POINTWISE_SUB:
      return x[0] - x[1];
    case CUDNN_POINTWISE_MUL:
      return x[0] * x[1];
    case CUDNN_POINTWISE_DIV:
      return x[0] / x[1];
    case CUDNN_POINTWISE_CMP_GE:
      return x[0] >= x[1] ? 1 : 0;
    case CUDNN_POINTWISE_BINARY_SELECT:
      return x[2] != 0 ? x[0] : x[1];
    default:
      return x[0];
  }
}

Values multiply(const GraphNode& node, const Values& a, const Values& b) {
  const auto matrices = [](const Integers& extents) { return Integers(extents.begin(), extents.end() - 2); };
  const Integers &whole = node.output.extents, outer = matrices(whole),
                 outer_b = matrices(node.inputs[1].extents);
  const auto rows = static_cast<size_t>(whole[whole.size() - 2]), columns = static_cast<size_t>(whole.back()),
             inner = static_cast<size_t>(node.inputs[0].extents.back());
  Values result(static_cast<size_t>(count(whole)));
  for (size_t matrix = 0; matrix < static_cast<size_t>(count(outer)); ++matrix) {
    const size_t other = element_of(index_of(static_cast<int64_t>(matrix), outer), outer, outer_b);
    for (size_t row = 0; row < rows; ++row)
      for (size_t column = 0; column < columns; ++column)
        for (size_t k = 0; k < inner; ++k)
          result[(matrix * rows + row) * columns + column] +=
              a[(matrix * rows + row) * inner + k] * b[(other * inner + k) * columns + column];
  }
  return result;
}

Values reduce(const GraphNode& node, const Values& x) {
  const bool adds = node.reduction == CUDNN_REDUCE_TENSOR_ADD;
  const Integers &whole = node.inputs[0].extents, &extents = node.output.extents;
  Values result(static_cast<size_t>(count(extents)), adds ? 0.0 : -INFINITY);
  for (size_t i = 0; i < x.size(); ++i) {
    double& into = result[element_of(index_of(static_cast<int64_t>(i), whole), whole, extents)];
    into = adds ? into + x[i] : std::max(into, x[i]);
  }
  return result;
}

/// The values of all tensors that have been computed or read, by name.
class Computation {
 public:
  explicit Computation(const GraphArrays& arrays) : arrays_(arrays) {}

  void run(const GraphNode& node) {
    std::vector<const Values*> inputs;
    for (const GraphTensor& input : node.inputs) inputs.push_back(&read(input));
    Values result;
    switch (node.kind) {
      case GraphNode::Kind::product:
        result = multiply(node, *inputs[0], *inputs[1]);
        break;
      case GraphNode::Kind::reduction:
        result = reduce(node, *inputs[0]);
        break;
      case GraphNode::Kind::elementwise:
      case GraphNode::Kind::transposition:
        result = map(node, inputs);
        break;
    }
    write(node.output, std::move(result));
  }

 private:
  static Values map(const GraphNode& node, const std::vector<const Values*>& inputs) {
    const Integers& whole = node.output.extents;
    const bool exchanges = node.kind == GraphNode::Kind::transposition;
    Values result(static_cast<size_t>(count(whole)));
    for (size_t i = 0; i < result.size(); ++i) {
      Integers index = index_of(static_cast<int64_t>(i), whole);
      double x[3] = {};
      for (size_t k = 0; k < inputs.size(); ++k)
        x[k] = exchanges ? (*inputs[k])[element_of(exchanged(index), exchanged(whole), exchanged(whole))]
                         : (*inputs[k])[element_of(index, whole, node.inputs[k].extents)];
      result[i] = node.mode == CUDNN_POINTWISE_GEN_INDEX
                      ? static_cast<double>(index[static_cast<size_t>(node.axis)])
                      : elementwise(node.mode, x);
    }
    return result;
  }

  static int64_t place(const GraphTensor& t, size_t i) {
    const Integers index = index_of(static_cast<int64_t>(i), t.extents);
    int64_t at = 0;
    for (size_t axis = 0; axis < index.size(); ++axis) at += index[axis] * t.strides[axis];
    return at;
  }

  const Values& read(const GraphTensor& t) {
    const auto found = values_.find(t.name);
    if (found != values_.end()) return found->second;
    Values& values = values_[t.name];
    if (t.is_by_value) return values = {arrays_.values.at(t.name)};
    values.resize(static_cast<size_t>(t.elements()));
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = read_number(arrays_.memory.at(t.name), t.type, place(t, i));
    return values;
  }

  void write(const GraphTensor& t, Values result) {
    for (size_t i = 0; i < result.size(); ++i) {
      if (!t.is_integer) {
        float rounded = 0;  // memory for a number of any floating-point type
        write_number(&rounded, t.type, 0, result[i]);
        result[i] = read_number(&rounded, t.type, 0);
      }
      if (!t.is_virtual) write_number(arrays_.memory.at(t.name), t.type, place(t, i), result[i]);
    }
    values_[t.name] = std::move(result);
  }

  const GraphArrays& arrays_;
  std::map<int64_t, Values> values_;
};

}  // namespace

int64_t GraphTensor::elements() const {
  return count(extents);
}

int64_t GraphTensor::extent_in_memory() const {
  int64_t last = 0;
  for (size_t axis = 0; axis < extents.size(); ++axis) last += (extents[axis] - 1) * strides[axis];
  return last + 1;
}

bool is_valid(const GraphNode& node) {
  const Integers &whole = node.output.extents, &first = node.inputs[0].extents;
  switch (node.kind) {
    case GraphNode::Kind::product: {
      const size_t last = whole.size() - 1;
      const Integers& second = node.inputs[1].extents;
      if (first.size() != whole.size() || second.size() != whole.size() || last < 1) return false;
      for (size_t axis = 0; axis + 1 < last; ++axis)
        if (first[axis] != whole[axis] || whole[axis] % second[axis] != 0) return false;
      return first[last] == second[last - 1] && first[last - 1] == whole[last - 1] &&
             second[last] == whole[last];
    }
    case GraphNode::Kind::reduction:
      return divide(whole, first) &&
             (node.reduction == CUDNN_REDUCE_TENSOR_ADD || node.reduction == CUDNN_REDUCE_TENSOR_MAX);
    case GraphNode::Kind::transposition:
      return first.size() > 1 && exchanged(first) == whole;
    case GraphNode::Kind::elementwise:
      break;
  }
  for (const GraphTensor& input : node.inputs)
    if (!is_broadcast(input.extents, whole)) return false;
  return node.inputs.size() == inputs_of(node.mode);
}

std::vector<GraphTensor> arrays_of(const std::vector<GraphNode>& nodes) {
  std::vector<GraphTensor> arrays;
  std::set<int64_t> names;
  const auto add = [&](const GraphTensor& t) {
    if (!t.is_virtual && names.insert(t.name).second) arrays.push_back(t);
  };
  for (const GraphNode& node : nodes) {
    for (const GraphTensor& input : node.inputs) add(input);
    add(node.output);
  }
  return arrays;
}

void compute(const std::vector<GraphNode>& nodes, const GraphArrays& arrays) {
  Computation computation(arrays);
  for (const GraphNode& node : nodes) computation.run(node);
}

}  // namespace dtrain::emulation
