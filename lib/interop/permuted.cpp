#include "interop/permuted.h"

namespace dtrain {

Shape permuted(const Shape& shape, const std::vector<int64_t>& axes) {
  std::vector<int64_t> extents;
  for (const int64_t axis : axes) extents.push_back(shape[static_cast<size_t>(axis)]);
  return Shape(extents);
}

std::vector<float> permuted(std::span<const float> values, const Shape& shape,
                            const std::vector<int64_t>& axes) {
  const Shape to = permuted(shape, axes);
  // strides of the array's axes, and the same strides in the order of the result's axes
  std::vector<int64_t> strides(shape.rank(), 1), steps;
  for (size_t i = shape.rank(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  for (const int64_t axis : axes) steps.push_back(strides[static_cast<size_t>(axis)]);
  std::vector<float> result;
  result.reserve(values.size());
  std::vector<int64_t> at(to.rank(), 0);
  int64_t from = 0;
  while (result.size() < values.size()) {
    result.push_back(values[static_cast<size_t>(from)]);
    for (size_t i = to.rank(); i-- > 0;) {
      from += steps[i];
      if (++at[i] < to[i]) break;
      from -= steps[i] * to[i];
      at[i] = 0;
    }
  }
  return result;
}

}  // namespace dtrain
