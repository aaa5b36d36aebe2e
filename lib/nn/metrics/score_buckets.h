// Counts of targets in buckets of scores (CountSpec::Kind::buckets). Metrics over all thresholds, such as the
// area under a curve, are computed from these counts.
#pragma once

#include <cstdint>
#include <numeric>
#include <span>

namespace dtrain {

/// Returns the default number of buckets per column. Every step clears, copies and adds all buckets.
/// Therefore outputs with many columns have fewer buckets per column.
inline int64_t default_buckets(int64_t columns) {
  constexpr int64_t kAll = 131072, kMost = 32768, kLeast = 4096;
  int64_t buckets = kMost;
  while (buckets > kLeast && buckets * columns > kAll) buckets /= 2;
  return buckets;
}

/// The counts of one curve. Negative and positive targets are counted separately, in buckets that are sorted
/// by ascending score.
struct BucketCounts {
  std::span<const double> negatives, positives;

  static double sum(std::span<const double> counts) {
    return std::accumulate(counts.begin(), counts.end(), 0.0);
  }
  /// Calls visit(positives, negatives, hits, misses) for each bucket that is not empty, beginning with the
  /// highest scores. hits and misses are the numbers of positives and negatives in all buckets that were
  /// visited before.
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

/// Documentation of the option `num_thresholds`.
inline constexpr auto kNumThresholds =
    "Number of intervals into which the scores are divided to count the targets. The limits of the intervals "
    "are about evenly spaced in the logarithm of the logits. Default: 32768, or fewer (at least 4096) for "
    "outputs with more than four columns";

}  // namespace dtrain
