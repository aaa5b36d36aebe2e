// Operators that move elements without any computation.
#include <algorithm>
#include <cstddef>
#include <stdexcept>

#include "interop/onnx/operators.h"
#include "interop/permuted.h"

namespace dtrain {

namespace {

OnnxArray transpose(const OnnxCall& call) {
  const OnnxArray& array = call.input(0);
  const std::vector<int64_t> axes = call.integers("perm");
  OnnxArray result;
  result.shape = permuted(array.shape, axes);
  result.values = permuted(array.values, array.shape, axes);
  return result;
}

/// Reshapes an array. In the new shape, 0 means that the extent of this axis does not change, and -1 means
/// that the extent is computed from the number of elements.
OnnxArray reshape(const OnnxCall& call) {
  OnnxArray result = call.input(0);
  std::vector<int64_t> extents = call.input(1).integers;
  for (size_t i = 0; i < extents.size(); ++i)
    if (extents[i] == 0) extents[i] = result.shape[i];
  if (const auto free = std::find(extents.begin(), extents.end(), -1); free != extents.end()) {
    *free = 1;
    *free = result.shape.elements() / Shape(extents).elements();
  }
  result.shape = Shape(extents);
  if (result.shape.elements() != static_cast<int64_t>(result.values.size()))
    throw std::logic_error("Reshape changes the number of elements");
  return result;
}

/// Flattens all axes after the batch axis.
OnnxArray flatten(const OnnxCall& call) {
  OnnxArray result = call.input(0);
  const int64_t samples = result.shape[0];
  result.shape = {samples, result.shape.elements() / samples};
  return result;
}

OnnxArray concatenate(const OnnxCall& call) {
  const auto axis = static_cast<size_t>(call.integer("axis", 1));
  Shape shape = call.input(0).shape;
  for (size_t i = 1; i < call.inputs.size(); ++i) shape[axis] += call.input(i).shape[axis];
  OnnxArray result(shape);
  result.values.clear();
  int64_t rows = 1;
  for (size_t i = 0; i < axis; ++i) rows *= shape[i];
  for (int64_t row = 0; row < rows; ++row)
    for (const OnnxArray* input : call.inputs) {
      const auto length = static_cast<ptrdiff_t>(input->values.size()) / rows;
      const auto first = input->values.begin() + row * length;
      result.values.insert(result.values.end(), first, first + length);
    }
  return result;
}

/// Copies the elements of `small` into the region of `large` that begins at `starts`. If `to_large` is false,
/// copies the elements of this region into `small` instead.
template <class Large, class Small>
void for_each_inside(Large& large, Small& small, const std::vector<int64_t>& starts, bool to_large) {
  std::vector<int64_t> at(small.shape.rank(), 0);
  for (auto& value : small.values) {
    int64_t place = 0;
    for (size_t i = 0; i < at.size(); ++i) place = place * large.shape[i] + starts[i] + at[i];
    auto& other = large.values[static_cast<size_t>(place)];
    if (to_large)
      other = value;
    else
      value = other;
    for (size_t i = at.size(); i-- > 0;) {
      if (++at[i] < small.shape[i]) break;
      at[i] = 0;
    }
  }
}

/// Pads with zeros.
OnnxArray pad(const OnnxCall& call) {
  OnnxArray array = call.input(0);
  const std::vector<int64_t>& pads = call.input(1).integers;
  Shape shape = array.shape;
  const size_t rank = shape.rank();
  for (size_t i = 0; i < rank; ++i) shape[i] += pads[i] + pads[i + rank];
  OnnxArray result(shape);
  for_each_inside(result, array, pads, true);
  return result;
}

/// Computes Slice for a step of 1 along each axis.
OnnxArray slice(const OnnxCall& call) {
  OnnxArray array = call.input(0);
  const std::vector<int64_t>& axes = call.input(3).integers;
  std::vector<int64_t> starts(array.shape.rank(), 0);
  Shape shape = array.shape;
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(axes[i]);
    starts[axis] = call.input(1).integers[i];
    shape[axis] = call.input(2).integers[i] - starts[axis];
  }
  OnnxArray result(shape);
  for_each_inside(array, result, starts, false);
  return result;
}

/// Returns an array of shape `shape`. Along each axis, index i of the result is read from index from(axis, i)
/// of `array`.
template <class From>
OnnxArray gathered(const OnnxArray& array, const Shape& shape, const From& from) {
  OnnxArray result(shape);
  for (size_t i = 0; i < result.values.size(); ++i) {
    auto rest = static_cast<int64_t>(i);
    int64_t place = 0, stride = 1;
    for (size_t axis = shape.rank(); axis-- > 0;) {
      place += from(axis, rest % shape[axis]) * stride;
      rest /= shape[axis];
      stride *= array.shape[axis];
    }
    result.values[i] = array.values[static_cast<size_t>(place)];
  }
  return result;
}

/// Repeats an array along its axes.
OnnxArray tile(const OnnxCall& call) {
  const OnnxArray& array = call.input(0);
  Shape shape = array.shape;
  for (size_t i = 0; i < shape.rank(); ++i) shape[i] *= call.input(1).integers[i];
  return gathered(array, shape, [&](size_t axis, int64_t at) { return at % array.shape[axis]; });
}

/// Selects elements of an axis by their indices.
OnnxArray gather(const OnnxCall& call) {
  const OnnxArray &array = call.input(0), &numbers = call.input(1);
  const auto axis = static_cast<ptrdiff_t>(call.integer("axis", 0));
  const auto begin = array.shape.begin();
  int64_t before = 1, columns = 1;
  std::for_each(begin, begin + axis, [&](int64_t extent) { before *= extent; });
  std::for_each(begin + axis + 1, array.shape.end(), [&](int64_t extent) { columns *= extent; });
  std::vector<int64_t> extents(begin, begin + axis);
  extents.insert(extents.end(), numbers.shape.begin(), numbers.shape.end());
  extents.insert(extents.end(), begin + axis + 1, array.shape.end());
  OnnxArray result{Shape(extents)};
  auto to = result.values.begin();
  const bool are_integers = !numbers.integers.empty();
  for (int64_t o = 0; o < before; ++o)
    for (size_t i = 0; i < static_cast<size_t>(numbers.shape.elements()); ++i) {
      const auto number = are_integers ? static_cast<ptrdiff_t>(numbers.integers[i])
                                       : static_cast<ptrdiff_t>(numbers.values[i]);
      const ptrdiff_t slice = o * *(begin + axis) + number;
      to = std::copy_n(array.values.begin() + slice * columns, columns, to);
    }
  return result;
}

/// Removes axes of extent 1.
OnnxArray squeeze(const OnnxCall& call) {
  OnnxArray array = call.input(0);
  const std::vector<int64_t>& axes = call.input(1).integers;
  std::vector<int64_t> extents;
  for (size_t axis = 0; axis < array.shape.rank(); ++axis)
    if (std::find(axes.begin(), axes.end(), static_cast<int64_t>(axis)) == axes.end())
      extents.push_back(array.shape[axis]);
  array.shape = Shape(extents);
  return array;
}

}  // namespace

void add_onnx_shapes(std::vector<std::pair<std::string, OnnxOperator>>& table) {
  table.emplace_back("Transpose", transpose);
  table.emplace_back("Reshape", reshape);
  table.emplace_back("Flatten", flatten);
  table.emplace_back("Concat", concatenate);
  table.emplace_back("Pad", pad);
  table.emplace_back("Slice", slice);
  table.emplace_back("Gather", gather);
  table.emplace_back("Squeeze", squeeze);
  table.emplace_back("Tile", tile);
}

}  // namespace dtrain
