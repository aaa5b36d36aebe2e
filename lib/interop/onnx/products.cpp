// Matrix products, softmax, and normalization of rows and channels.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "interop/onnx/operators.h"

namespace dtrain {

namespace {

/// Multiplies [..., k] by [k, n], or [..., m, k] by [..., k, n]. In the second case, all other axes must have
/// the same sizes.
OnnxArray matmul(const OnnxCall& call) {
  const OnnxArray &a = call.input(0), &b = call.input(1);
  const size_t rank = b.shape.rank();
  const int64_t inner = b.shape[rank - 2], columns = b.shape[rank - 1], rows = a.shape.positions();
  // number of rows of `a` that are multiplied by the same matrix of `b`
  const int64_t rows_of_matrix = rank == 2 ? rows : a.shape[rank - 2];
  Shape shape = a.shape;
  shape[shape.rank() - 1] = columns;
  OnnxArray result(shape);
  for (int64_t i = 0; i < rows; ++i) {
    float* row = result.values.data() + i * columns;
    const float* const matrix = b.values.data() + i / rows_of_matrix * inner * columns;
    for (int64_t k = 0; k < inner; ++k) {
      const float factor = a.values[static_cast<size_t>(i * inner + k)];
      const float* other = matrix + k * columns;
      for (int64_t j = 0; j < columns; ++j) row[j] += factor * other[j];
    }
  }
  return result;
}

/// Computes Gemm with the default values of its attributes.
OnnxArray gemm(const OnnxCall& call) {
  OnnxArray result = matmul(call);
  if (!call.has_input(2)) return result;
  const std::vector<float>& bias = call.input(2).values;
  for (size_t i = 0; i < result.values.size(); ++i) result.values[i] += bias[i % bias.size()];
  return result;
}

/// Computes the softmax over the last axis.
OnnxArray softmax(const OnnxCall& call) {
  OnnxArray result = call.input(0);
  const auto columns = static_cast<size_t>(result.shape.columns());
  for (size_t at = 0; at < result.values.size(); at += columns) {
    float* row = result.values.data() + at;
    const float most = *std::max_element(row, row + columns);
    double sum = 0;
    for (size_t i = 0; i < columns; ++i) sum += std::exp(static_cast<double>(row[i] - most));
    for (size_t i = 0; i < columns; ++i)
      row[i] = static_cast<float>(std::exp(static_cast<double>(row[i] - most)) / sum);
  }
  return result;
}

OnnxArray batch_normalization(const OnnxCall& call) {
  OnnxArray result = call.input(0);
  const auto channels = static_cast<size_t>(result.shape[1]);
  size_t pixels = 1;
  for (size_t i = 2; i < result.shape.rank(); ++i) pixels *= static_cast<size_t>(result.shape[i]);
  const auto parameter = [&](size_t input, size_t channel) {
    return static_cast<double>(call.input(input).values[channel]);
  };
  const double epsilon = static_cast<double>(call.number("epsilon", 1e-5f));
  for (size_t i = 0; i < result.values.size(); ++i) {
    const size_t channel = i / pixels % channels;
    const double scale = parameter(1, channel) / std::sqrt(parameter(4, channel) + epsilon);
    const double value = static_cast<double>(result.values[i]) - parameter(3, channel);
    result.values[i] = static_cast<float>(value * scale + parameter(2, channel));
  }
  return result;
}

/// Computes layer normalization over the last axis.
OnnxArray layer_normalization(const OnnxCall& call) {
  OnnxArray result = call.input(0);
  const auto columns = static_cast<size_t>(result.shape.columns());
  const double epsilon = static_cast<double>(call.number("epsilon", 1e-5f));
  for (size_t at = 0; at < result.values.size(); at += columns) {
    float* row = result.values.data() + at;
    double mean = 0, variance = 0;
    for (size_t i = 0; i < columns; ++i) mean += static_cast<double>(row[i]) / static_cast<double>(columns);
    for (size_t i = 0; i < columns; ++i) {
      const double distance = static_cast<double>(row[i]) - mean;
      variance += distance * distance / static_cast<double>(columns);
    }
    for (size_t i = 0; i < columns; ++i) {
      const double one = (static_cast<double>(row[i]) - mean) / std::sqrt(variance + epsilon);
      const double bias = call.has_input(2) ? static_cast<double>(call.input(2).values[i]) : 0;
      row[i] = static_cast<float>(one * static_cast<double>(call.input(1).values[i]) + bias);
    }
  }
  return result;
}

/// Computes instance normalization: each channel of each sample has its own mean and variance.
OnnxArray instance_normalization(const OnnxCall& call) {
  OnnxArray result = call.input(0);
  const auto channels = static_cast<size_t>(result.shape[1]);
  const size_t pixels = result.values.size() / static_cast<size_t>(result.shape[0]) / channels;
  const double epsilon = static_cast<double>(call.number("epsilon", 1e-5f));
  for (size_t at = 0; at < result.values.size(); at += pixels) {
    float* row = result.values.data() + at;
    const size_t channel = at / pixels % channels;
    double mean = 0, variance = 0;
    for (size_t i = 0; i < pixels; ++i) mean += static_cast<double>(row[i]) / static_cast<double>(pixels);
    for (size_t i = 0; i < pixels; ++i) {
      const double distance = static_cast<double>(row[i]) - mean;
      variance += distance * distance / static_cast<double>(pixels);
    }
    const double scale = static_cast<double>(call.input(1).values[channel]) / std::sqrt(variance + epsilon);
    for (size_t i = 0; i < pixels; ++i)
      row[i] = static_cast<float>((static_cast<double>(row[i]) - mean) * scale +
                                  static_cast<double>(call.input(2).values[channel]));
  }
  return result;
}

/// Returns an operator that reduces each row along the last axis to one number. The last axis has extent 1 in
/// the result. `function` computes the number from pointers to the first and the past-the-end element of a
/// row.
OnnxOperator row_reduction(float (*function)(const float* begin, const float* end)) {
  return [function](const OnnxCall& call) {
    const OnnxArray& array = call.input(0);
    // In older operator sets, the axes are an attribute instead of an input.
    const std::vector<int64_t> axes = call.has_input(1) ? call.input(1).integers : call.integers("axes");
    if (axes != std::vector<int64_t>{-1} || call.integer("keepdims", 1) != 1)
      throw std::logic_error(
          "the check of ONNX models supports reductions only along the last axis and with keepdims");
    Shape shape = array.shape;
    const int64_t columns = shape.columns();
    shape[shape.rank() - 1] = 1;
    OnnxArray result(shape);
    const float* row = array.values.data();
    for (float& value : result.values) {
      value = function(row, row + columns);
      row += columns;
    }
    return result;
  };
}

float sum_of(const float* begin, const float* end) {
  return static_cast<float>(std::accumulate(begin, end, 0.0));
}

/// Returns the maximum of the elements, or NaN if one of them is NaN.
float maximum_of(const float* begin, const float* end) {
  return std::accumulate(begin, end, *begin,
                         [](float most, float x) { return most > x || std::isnan(most) ? most : x; });
}

}  // namespace

void add_onnx_products(std::vector<std::pair<std::string, OnnxOperator>>& table) {
  table.emplace_back("MatMul", matmul);
  table.emplace_back("Gemm", gemm);
  table.emplace_back("Softmax", softmax);
  table.emplace_back("BatchNormalization", batch_normalization);
  table.emplace_back("LayerNormalization", layer_normalization);
  table.emplace_back("InstanceNormalization", instance_normalization);
  table.emplace_back("ReduceSum", row_reduction(sum_of));
  table.emplace_back("ReduceMax", row_reduction(maximum_of));
}

}  // namespace dtrain
