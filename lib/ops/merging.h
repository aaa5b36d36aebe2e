// Specs of operations that merge arrays or sum strided elements.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace dtrain {

/// Elementwise operations that merge arrays of the same shape: the first minus the second array, the mean,
/// the maximum, or the minimum.
enum class MergeKind { subtract, average, maximum, minimum };

/// Maximum number of arrays in one merge.
inline constexpr size_t kMostMerged = 64;

/// Sums strided elements of src:
///
/// dst[i0, ..., i5] = the sum over j0 and j1, in this order, of
///     src[i0 * strides[0] + ... + i5 * strides[5] + j0 * sum_strides[0] + j1 * sum_strides[1]]
///
/// Without sums, this is a copy: with permuted axes, with repeated elements (if a stride is 0), or with
/// reversed elements (if a stride is negative). With sums, it can be the gradient of such a copy. dst is row
/// major. Strides are numbers of elements.
struct StridedSum {
  /// Extents and strides of axes, outermost first.
  std::array<int64_t, 6> extents{1, 1, 1, 1, 1, 1}, strides{};
  std::array<int64_t, 2> sum_extents{1, 1}, sum_strides{};

  int64_t elements() const {
    int64_t product = 1;
    for (const int64_t extent : extents) product *= extent;
    return product;
  }
};

}  // namespace dtrain
