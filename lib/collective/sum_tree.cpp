#include "collective/sum_tree.h"

#include <utility>

namespace dtrain {

namespace {

std::vector<Range> leaves(int ranks) {
  std::vector<Range> nodes;
  for (int64_t rank = 0; rank < ranks; ++rank) nodes.push_back({rank, rank + 1});
  return nodes;
}

void add_subtrees(Range node, Range own, std::vector<Range>& found) {
  const int64_t common = overlap(node, own).size();
  if (common == 0) return;
  if (common == node.size()) return found.push_back(node);
  const int64_t middle = middle_of(node);
  add_subtrees({node.begin, middle}, own, found);
  add_subtrees({middle, node.end}, own, found);
}

}  // namespace

std::vector<Range> subtrees(Range own, int total) {
  std::vector<Range> found;
  add_subtrees({0, total}, own, found);
  return found;
}

SumTree::SumTree(int ranks) : SumTree(leaves(ranks)) {}

SumTree::SumTree(std::vector<Range> nodes)
    : nodes_(std::move(nodes)), root_{nodes_.front().begin, nodes_.back().end} {
  size_t array = 0;
  blocks_ = blocks_of(root_, array);
}

int SumTree::blocks_of(Range node, size_t& array) const {
  if (is_array(node, array)) {
    ++array;
    return 0;
  }
  const int64_t middle = middle_of(node);
  const int left = blocks_of({node.begin, middle}, array);
  const int right = blocks_of({middle, node.end}, array);
  return std::max(std::max(left, 1), 1 + right);
}

}  // namespace dtrain
