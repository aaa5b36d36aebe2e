// Counts of targets in buckets of scores (CountSpec::Kind::buckets), from which metrics over all thresholds
// are computed.
#pragma once

#include <cstdint>
#include <numeric>
#include <span>

namespace dtrain {

/// Returns the default number of buckets per column. Every step clears, copies and adds all buckets, so
/// outputs with many columns get fewer buckets per column.
inline int64_t default_buckets(int64_t columns) {
  constexpr int64_t kAll = 131072, kMost = 32768, kLeast = 4096;
  int64_t buckets = kMost;
  while (buckets > kLeast && buckets * columns > kAll) buckets /= 2;
  return buckets;
}

/// The counts of one curve: negative and positive targets, in buckets of ascending scores.
struct BucketCounts {
  std::span<const double> negatives, positives;

  static double sum(std::span<const double> counts) {
    return std::accumulate(counts.begin(), counts.end(), 0.0);
  }
  /// Calls visit(positives, negatives, hits, misses) for each non-empty bucket from the highest score down.
  /// hits and misses are the positives and negatives of the buckets visited before.
  template <class Visit>
  void for_each_bucket(Visit&& visit) const {
    double hits = 0, misses = 0;
    for (size_t i = positives.size(); i-- > 0;) {
      if (positives[i] == 0 && negatives[i] == 0) continue;
      visit(positives[i], negatives[i], hits, misses);
      hits += positives[i];
      misses += negatives[i];
    }
  }
};

/// Description of the option `num_thresholds`.
inline constexpr auto kNumThresholds =
    "number of intervals of scores in which targets are counted, with limits about evenly spaced in the "
    "logarithm of the logits; default: 32768, or fewer (at least 4096) for outputs with more than four "
    "columns";

}  // namespace dtrain
