#include "engine/update/pairwise_terms.h"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <tuple>

#include "ops/math/pairwise.h"

namespace dtrain {

namespace {

constexpr int64_t kGrain = math::kSquaresGrain;

/// A term and its sum. Ranks exchange them as kNumbers doubles, which represent the integers exactly.
struct ExchangedTerm {
  int64_t array, first;
  int level;
  double sum;
};
constexpr size_t kNumbers = 4;

}  // namespace

int64_t grains_of(int64_t floats) {
  return (floats + kGrain - 1) / kGrain;
}

size_t most_terms(int64_t grains) {
  return 2 * static_cast<size_t>(std::bit_width(static_cast<uint64_t>(grains)));  // two per level
}

/// Splits the grains, from left to right, into the largest possible terms. The number of grains of a term is
/// a power of two, and the index of the term's first grain is a multiple of this number. Only the array's
/// last term may extend beyond the end of the array.
void add_terms(std::vector<PairwiseTerm>& terms, int64_t array, Range values, int64_t first, int64_t grains) {
  const int64_t end = first + grains_of(values.size());
  int64_t begin = values.begin;
  while (first < end) {
    const auto left = static_cast<uint64_t>(end - first);
    const int fits = end == grains ? std::bit_width(left - 1) : std::bit_width(left) - 1;
    const int level = first == 0 ? fits : std::min(fits, std::countr_zero(static_cast<uint64_t>(first)));
    const int64_t size = std::min(int64_t{1} << level, end - first);
    terms.push_back({array, first, level, {begin, std::min(begin + size * kGrain, values.end)}});
    first += size;
    begin += size * kGrain;
  }
}

std::vector<double> sum_over_members(Collective& everyone, std::span<const PairwiseTerm> terms,
                                     std::span<const double> sums, size_t most, size_t arrays) {
  std::vector<double> mine(most * kNumbers, -1.0);  // unused entries have -1 as index of the array
  for (size_t i = 0; i < terms.size(); ++i) {
    const double numbers[] = {static_cast<double>(terms[i].array), static_cast<double>(terms[i].first),
                              static_cast<double>(terms[i].level), sums[i]};
    std::copy_n(numbers, kNumbers, mine.begin() + static_cast<std::ptrdiff_t>(kNumbers * i));
  }
  std::vector<double> gathered(mine.size() * static_cast<size_t>(everyone.size()));
  everyone.all_gather(mine, gathered);

  std::vector<ExchangedTerm> all;
  for (size_t i = 0; i < gathered.size(); i += kNumbers)
    if (gathered[i] >= 0)
      all.push_back({static_cast<int64_t>(gathered[i]), static_cast<int64_t>(gathered[i + 1]),
                     static_cast<int>(gathered[i + 2]), gathered[i + 3]});
  std::sort(all.begin(), all.end(), [](const ExchangedTerm& a, const ExchangedTerm& b) {
    return std::tie(a.array, a.first) < std::tie(b.array, b.first);
  });
  std::vector<math::PairwiseSum> totals(arrays);
  for (const ExchangedTerm& term : all) {
    math::PairwiseSum& total = totals[static_cast<size_t>(term.array)];
    if (term.first != total.count())
      throw std::logic_error("each part of a summed array must belong to exactly one rank");
    total.add(term.sum, term.level);
  }
  std::vector<double> result(arrays);
  std::transform(totals.begin(), totals.end(), result.begin(),
                 [](const math::PairwiseSum& total) { return total.total(); });
  return result;
}

}  // namespace dtrain
