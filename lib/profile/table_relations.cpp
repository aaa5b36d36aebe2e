#include "profile/table_relations.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

namespace dtrain {

namespace {

using Pairs = std::vector<std::pair<double, double>>;

constexpr int64_t kEnoughRows = 20;

/// Returns the probability that two randomly chosen pairs differ in their second value.
double difference_of_second(const Pairs& pairs) {
  std::vector<double> values;
  for (const auto& pair : pairs) values.push_back(pair.second);
  std::sort(values.begin(), values.end());
  double same = 0;
  for (auto begin = values.begin(); begin != values.end();) {
    const auto end = std::upper_bound(begin, values.end(), *begin);
    const double share = static_cast<double>(end - begin) / static_cast<double>(values.size());
    same += share * share;
    begin = end;
  }
  return 1 - same;
}

/// Returns true if, in sorted pairs, the first value determines the second. There must be enough evidence: if
/// the columns were independent, at least kEnoughRows pairs of rows with equal first values would be expected
/// to have different second values.
bool is_function(const Pairs& sorted) {
  double equal = 0;
  for (auto begin = sorted.begin(); begin != sorted.end();) {
    auto end = begin;
    for (; end != sorted.end() && end->first == begin->first; ++end)
      if (end->second != begin->second) return false;
    const auto count = static_cast<double>(end - begin);
    equal += count * (count - 1) / 2;
    begin = end;
  }
  return equal * difference_of_second(sorted) >= kEnoughRows;
}

/// Returns true if, in sorted pairs, the second value always increases, or always decreases, with the first.
bool is_monotone(const Pairs& sorted) {
  int64_t ups = 0, downs = 0;
  for (size_t i = 1; i < sorted.size(); ++i) {
    const auto& [first, second] = sorted[i - 1];
    if (first == sorted[i].first && second == sorted[i].second) continue;
    if (first == sorted[i].first || second == sorted[i].second) return false;
    ++(second < sorted[i].second ? ups : downs);
  }
  return ups + downs >= kEnoughRows && (ups == 0 || downs == 0);
}

/// Returns the square of Pearson's correlation.
double squared_correlation(std::span<const std::pair<double, double>> pairs) {
  double mean_x = 0, mean_y = 0, xx = 0, yy = 0, xy = 0;
  for (const auto& [x, y] : pairs) {
    mean_x += x / static_cast<double>(pairs.size());
    mean_y += y / static_cast<double>(pairs.size());
  }
  for (const auto& [x, y] : pairs) {
    xx += (x - mean_x) * (x - mean_x);
    yy += (y - mean_y) * (y - mean_y);
    xy += (x - mean_x) * (y - mean_y);
  }
  return xx > 0 && yy > 0 ? xy / xx * (xy / yy) : 0;
}

/// Returns true if the sorted pairs are on a line. The middle half alone must also be on a line, because a
/// few outliers can make any data look linear.
bool is_line(const Pairs& sorted) {
  constexpr double kLine = 0.9999;
  const std::span<const std::pair<double, double>> all(sorted);
  return squared_correlation(all) > kLine &&
         squared_correlation(all.subspan(all.size() / 4, all.size() / 2)) > kLine;
}

}  // namespace

ColumnRelation relate(const ColumnProfile& one, const ColumnProfile& other) {
  Pairs pairs;
  for (size_t i = 0; i < one.sample.size(); ++i)
    if (!std::isnan(one.sample[i]) && !std::isnan(other.sample[i]))
      pairs.emplace_back(one.sample[i], other.sample[i]);
  if (static_cast<int64_t>(pairs.size()) < kEnoughRows) return {};
  const bool are_numbers =
      one.kind == ColumnProfile::Kind::number && other.kind == ColumnProfile::Kind::number;
  ColumnRelation relation;
  std::sort(pairs.begin(), pairs.end());
  relation.determines = is_function(pairs);
  const bool on_line = are_numbers && is_line(pairs), on_curve = are_numbers && is_monotone(pairs);
  for (auto& [first, second] : pairs) std::swap(first, second);
  std::sort(pairs.begin(), pairs.end());
  relation.is_determined = is_function(pairs);
  relation.is_same = on_line || (relation.determines && relation.is_determined);
  relation.determines = relation.determines || on_curve;
  return relation;
}

}  // namespace dtrain
