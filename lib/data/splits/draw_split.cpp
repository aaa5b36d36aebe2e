#include "data/splits/draw_split.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "data/loader/shuffle.h"

namespace dtrain {

namespace {

constexpr int64_t kDrawing = -1;  // used in place of an epoch number; different from all epoch numbers

int64_t rounded(double value) {
  return static_cast<int64_t>(std::floor(value + 0.5));
}

/// The remaining rows in random order, grouped by label. Without labels, there is only one group.
using Groups = std::map<double, std::vector<int64_t>>;

Groups group(const std::vector<int64_t>& remaining, std::span<const double> labels) {
  Groups groups;
  for (const int64_t row : remaining)
    groups[labels.empty() ? 0.0 : labels[static_cast<size_t>(row)]].push_back(row);
  return groups;
}

/// Returns the number of rows to draw from each group. Each group has a quota, which is a fraction of its
/// rows. Each group first gets the integer part of its quota. The groups with the largest fractional parts
/// then get one more row each, until the sum is `wanted`. If there are several groups, at least one row is
/// left in each group.
std::vector<int64_t> shares(const Groups& groups, const std::map<double, int64_t>& sizes, double fraction,
                            int64_t wanted) {
  std::vector<int64_t> counts, most;
  std::vector<double> rest;
  int64_t given = 0;
  for (const auto& [label, rows] : groups) {
    const double quota = fraction * static_cast<double>(sizes.at(label));
    most.push_back(static_cast<int64_t>(rows.size()) - (groups.size() > 1 ? 1 : 0));
    counts.push_back(std::min(static_cast<int64_t>(std::floor(quota)), most.back()));
    rest.push_back(quota - std::floor(quota));
    given += counts.back();
  }
  std::vector<size_t> order(counts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return rest[a] > rest[b]; });
  for (bool more = true; more && given < wanted;) {
    more = false;
    for (const size_t i : order) {
      if (given == wanted || counts[i] >= most[i]) continue;
      ++counts[i];
      ++given;
      more = true;
    }
  }
  return counts;
}

}  // namespace

std::vector<std::vector<int64_t>> draw_splits(int64_t rows, std::span<const Draw> draws, uint64_t seed) {
  const std::vector<int64_t> order = shuffled_order(rows, seed, kDrawing);
  std::vector<int> part(static_cast<size_t>(rows), -1);
  for (size_t d = 0; d < draws.size(); ++d) {
    const Draw& draw = draws[d];
    std::vector<int64_t> remaining;
    for (const int64_t row : order)
      if (part[static_cast<size_t>(row)] < 0) remaining.push_back(row);
    std::map<double, int64_t> sizes;
    for (const auto& [label, of_label] : group(order, draw.labels))
      sizes[label] = static_cast<int64_t>(of_label.size());
    const Groups groups = group(remaining, draw.labels);
    const int64_t wanted = std::max<int64_t>(1, rounded(draw.fraction * static_cast<double>(rows)));
    const std::vector<int64_t> counts = shares(groups, sizes, draw.fraction, wanted);
    size_t g = 0;
    for (const auto& [label, of_label] : groups) {
      for (int64_t i = 0; i < counts[g]; ++i)
        part[static_cast<size_t>(of_label[static_cast<size_t>(i)])] = static_cast<int>(d);
      ++g;
    }
  }
  std::vector<std::vector<int64_t>> all(draws.size() + 1);
  for (int64_t row = 0; row < rows; ++row) {
    const int which = part[static_cast<size_t>(row)];
    all[which < 0 ? draws.size() : static_cast<size_t>(which)].push_back(row);
  }
  return all;
}

std::vector<std::vector<int64_t>> cut_splits(int64_t rows, std::span<const Draw> draws, int64_t overlap) {
  std::vector<std::vector<int64_t>> all(draws.size() + 1);
  int64_t end = rows;
  const auto take = [&](std::vector<int64_t>& part, int64_t count) {
    const int64_t begin = std::max<int64_t>(0, end - count);
    part.resize(static_cast<size_t>(end - begin));
    std::iota(part.begin(), part.end(), begin);
    end = std::max<int64_t>(0, begin - overlap);
  };
  for (size_t d = draws.size(); d-- > 0;)
    take(all[d], std::max<int64_t>(1, rounded(draws[d].fraction * static_cast<double>(rows))));
  take(all.back(), end);
  return all;
}

}  // namespace dtrain
