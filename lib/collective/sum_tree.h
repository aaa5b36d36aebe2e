// The order in which arrays of several replicas are added. The order is given by a binary tree over the
// replicas' ranks (pairwise summation: N. Higham, "The accuracy of floating point summation", SIAM J. Sci.
// Comput. 14, 1993, section 2). The number of ranks in the left half of a node of n ranks is the largest
// power of two below n. This gives (a + b) + c for three ranks and (a + b) + (c + d) for four ranks. A
// process adds the arrays of each node whose ranks all belong to the process. Therefore the sum over all
// ranks has the same bits for every division of the ranks among processes.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "collective/range.h"

namespace dtrain {

/// Returns the first rank of the right half of a node with several ranks.
inline int64_t middle_of(Range node) {
  return node.begin + static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(node.size() - 1)));
}

/// Returns the largest nodes of the tree over `total` ranks that contain only ranks in `own`, in the order of
/// their ranks. There are at most 2 log2(total) such nodes.
std::vector<Range> subtrees(Range own, int total);

/// Adds arrays in the order of the tree.
class SumTree {
 public:
  /// Creates a tree that adds the arrays of `ranks` adjacent ranks. These ranks must be one node of the tree
  /// over all ranks.
  explicit SumTree(int ranks);
  /// Creates a tree that adds partial sums. Each partial sum is the sum over the ranks of one of `nodes`. The
  /// nodes must be in order, and their union must be a node of the tree over all ranks.
  explicit SumTree(std::vector<Range> nodes);

  /// Writes the sums of elements `range` of the arrays to the same elements of `sums`, which may be one of
  /// the arrays. A null array counts as zeros.
  template <class T>
  void add(std::span<const T* const> arrays, T* sums, Range range) const;

 private:
  /// Number of elements of each array that are added at a time. It is small, so that partial sums remain in
  /// the L1 cache.
  static constexpr int64_t kBlock = 2048;

  bool is_array(Range node, size_t array) const {
    return nodes_[array].begin == node.begin && nodes_[array].end == node.end;
  }
  /// Returns the number of blocks of memory (kBlock elements each) that the partial sums of a node need.
  /// `array` must be the index of the node's first array. It is set to the index of the first array after the
  /// node.
  int blocks_of(Range node, size_t& array) const;
  /// Returns the sums of n elements, starting at element `at`, over the arrays of a node. If the node has a
  /// single array, the result points into that array. Otherwise the partial sums are written to `memory`.
  /// Returns null if all arrays of the node are null, that is, if they count as zeros. `array`: see
  /// blocks_of().
  template <class T>
  const T* add_block(Range node, std::span<const T* const> arrays, int64_t at, int64_t n, T* memory,
                     size_t& array) const;

  std::vector<Range> nodes_;
  Range root_;
  int blocks_;
};

template <class T>
const T* SumTree::add_block(Range node, std::span<const T* const> arrays, int64_t at, int64_t n, T* memory,
                            size_t& array) const {
  if (is_array(node, array)) {
    const T* const values = arrays[array++];
    return values ? values + at : nullptr;
  }
  const int64_t middle = middle_of(node);
  const T* const left = add_block({node.begin, middle}, arrays, at, n, memory, array);
  const T* const right = add_block({middle, node.end}, arrays, at, n, memory + kBlock, array);
  if (!left || !right) return left ? left : right;
  for (int64_t i = 0; i < n; ++i) memory[i] = left[i] + right[i];
  return memory;
}

template <class T>
void SumTree::add(std::span<const T* const> arrays, T* sums, Range range) const {
  const auto memory = std::make_unique_for_overwrite<T[]>(static_cast<size_t>(blocks_ * kBlock));
  for (int64_t at = range.begin; at < range.end; at += kBlock) {
    const int64_t n = std::min(kBlock, range.end - at);
    size_t array = 0;
    const T* const block = add_block(root_, arrays, at, n, memory.get(), array);
    if (!block) std::fill_n(sums + at, n, T{});
    if (block && block != sums + at) std::copy_n(block, n, sums + at);
  }
}

}  // namespace dtrain
