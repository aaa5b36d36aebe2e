// Arrays with their axes in another order.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/shape.h"

namespace dtrain {

/// The elements of `values`, of `shape`, where axis i of the result is axis `axes[i]` of the array.
std::vector<float> permuted(std::span<const float> values, const Shape& shape,
                            const std::vector<int64_t>& axes);
/// The shape of that result.
Shape permuted(const Shape& shape, const std::vector<int64_t>& axes);

}  // namespace dtrain
