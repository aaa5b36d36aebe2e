// The order of sums over replicas.
#include "collective/sum_tree.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>

using namespace dtrain;

namespace {

/// Returns the order of a sum over ranks a, b, c, ... as text.
std::string order_of(Range node) {
  if (node.size() == 1) return std::string(1, static_cast<char>('a' + node.begin));
  const int64_t middle = middle_of(node);
  return "(" + order_of({node.begin, middle}) + "+" + order_of({middle, node.end}) + ")";
}

std::string text_of(const std::vector<Range>& nodes) {
  std::string text;
  for (const Range& node : nodes) text += order_of(node);
  return text;
}

}  // namespace

TEST_CASE("the left half of a node is the largest possible power of two") {
  CHECK(order_of({0, 2}) == "(a+b)");
  CHECK(order_of({0, 3}) == "((a+b)+c)");
  CHECK(order_of({0, 4}) == "((a+b)+(c+d))");
  CHECK(order_of({0, 7}) == "(((a+b)+(c+d))+((e+f)+g))");
}

TEST_CASE("subtrees are the largest nodes within a range of ranks") {
  CHECK(text_of(subtrees({0, 4}, 4)) == "((a+b)+(c+d))");
  CHECK(text_of(subtrees({0, 3}, 4)) == "(a+b)c");
  CHECK(text_of(subtrees({1, 4}, 4)) == "b(c+d)");
  CHECK(text_of(subtrees({4, 7}, 7)) == "((e+f)+g)");
  CHECK(text_of(subtrees({4, 7}, 8)) == "(e+f)g");
  CHECK(subtrees({3, 61}, 64).size() <= 12);
}

TEST_CASE(
    "arrays are added in the order of the tree, as a whole or in parts, in place or into another array") {
  for (const int ranks : {1, 2, 3, 4, 5, 6, 7, 8, 13}) {
    CAPTURE(ranks);
    const int64_t n = 5003;
    std::vector<std::vector<float>> arrays;
    for (int rank = 0; rank < ranks; ++rank) {
      arrays.emplace_back();
      for (int64_t i = 0; i < n; ++i)
        arrays.back().push_back(0.1f * static_cast<float>((i * 7 + rank * 31) % 1009));
    }
    const auto expected = [&](const auto& self, Range node, size_t i) -> float {
      if (node.size() == 1) return arrays[static_cast<size_t>(node.begin)][i];
      const int64_t middle = middle_of(node);
      return self(self, {node.begin, middle}, i) + self(self, {middle, node.end}, i);
    };
    std::vector<float> sums;
    for (size_t i = 0; i < static_cast<size_t>(n); ++i) sums.push_back(expected(expected, {0, ranks}, i));
    std::vector<const float*> parts;
    for (const auto& array : arrays) parts.push_back(array.data());
    std::vector<float> found(static_cast<size_t>(n), -1.0f);
    SumTree(ranks).add<float>(parts, found.data(), {0, 4000});
    CHECK(found[4000] == -1.0f);
    SumTree(ranks).add<float>(parts, found.data(), {4000, n});
    CHECK(found == sums);
    SumTree(ranks).add<float>(parts, arrays[0].data(), {0, n});
    CHECK(arrays[0] == sums);
  }
}

TEST_CASE("missing arrays count as zeros") {
  const std::vector<double> a{1, 2}, d{10, 20};
  std::vector<double> sums(2, -1.0);
  SumTree(4).add<double>(std::vector<const double*>{a.data(), nullptr, nullptr, d.data()}, sums.data(),
                         {0, 2});
  CHECK(sums == std::vector<double>{11, 22});
  SumTree(3).add<double>(std::vector<const double*>(3), sums.data(), {0, 2});
  CHECK(sums == std::vector<double>{0, 0});
}
