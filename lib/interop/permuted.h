// Transposes arrays.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/shape.h"

namespace dtrain {

/// Returns the transposed array: axis i of the result is axis `axes[i]` of `values`, whose shape is `shape`.
std::vector<float> permuted(std::span<const float> values, const Shape& shape,
                            const std::vector<int64_t>& axes);
/// Returns the shape of the transposed array.
Shape permuted(const Shape& shape, const std::vector<int64_t>& axes);

}  // namespace dtrain
