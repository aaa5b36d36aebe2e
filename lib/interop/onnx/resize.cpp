// The operator Resize, with nearest or linear interpolation.
#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "interop/onnx/operators.h"

namespace dtrain {

namespace {

/// The two elements of an axis between which a result is interpolated. `part` is the weight of the second
/// element.
struct Neighbors {
  int64_t first = 0, second = 0;
  float part = 0;
};

Neighbors nearest(int64_t at, float factor, int64_t /*extent*/) {
  const auto from = static_cast<int64_t>(std::floor(static_cast<float>(at) / factor));
  return {from, from, 0};
}

/// Returns the neighbors of position `at` of the result, in ONNX's half_pixel mode. If a neighbor is
/// outside the array, it is replaced by the nearest element.
Neighbors linear(int64_t at, float factor, int64_t extent) {
  const float place = (static_cast<float>(at) + 0.5f) / factor - 0.5f;
  const auto before = static_cast<int64_t>(std::floor(place));
  const auto inside = [&](int64_t one) { return std::clamp<int64_t>(one, 0, extent - 1); };
  return {inside(before), inside(before + 1), place - static_cast<float>(before)};
}

/// Returns the array with one axis resized.
template <class Find>
OnnxArray resized(const OnnxArray& array, size_t axis, float factor, Find&& find) {
  Shape shape = array.shape;
  const int64_t extent = shape[axis];
  shape[axis] = static_cast<int64_t>(std::floor(static_cast<float>(extent) * factor));
  OnnxArray result(shape);
  int64_t inner = 1;
  for (size_t i = axis + 1; i < shape.rank(); ++i) inner *= shape[i];
  for (int64_t i = 0; i < static_cast<int64_t>(result.values.size()); ++i) {
    const Neighbors from = find(i / inner % shape[axis], factor, extent);
    const int64_t first = i / inner / shape[axis] * extent * inner + i % inner;
    const float a = array.values[static_cast<size_t>(first + from.first * inner)],
                b = array.values[static_cast<size_t>(first + from.second * inner)];
    result.values[static_cast<size_t>(i)] = a + (b - a) * from.part;
  }
  return result;
}

OnnxArray resize(const OnnxCall& call) {
  const std::string mode = call.text("mode", "nearest"),
                    coordinates = call.text("coordinate_transformation_mode", "half_pixel");
  const bool is_linear = mode == "linear" && coordinates == "half_pixel";
  if (!is_linear && !(mode == "nearest" && coordinates == "asymmetric"))
    throw std::logic_error("the check of ONNX models does not support Resize with " + mode + ", " +
                           coordinates);
  OnnxArray result = call.input(0);
  for (size_t axis = 0; axis < result.shape.rank(); ++axis)
    if (const float factor = call.input(2).values[axis]; factor != 1)
      result = resized(result, axis, factor, is_linear ? linear : nearest);
  return result;
}

}  // namespace

void add_onnx_resize(std::vector<std::pair<std::string, OnnxOperator>>& table) {
  table.emplace_back("Resize", resize);
}

}  // namespace dtrain
