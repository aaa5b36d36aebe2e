#include "train/gradient_norm.h"

#include <algorithm>
#include <bit>
#include <stdexcept>

#include "ops/math/pairwise.h"

namespace dtrain {

namespace {

constexpr int64_t kGrain = math::kSquaresGrain;

int64_t grains_of(int64_t floats) {
  return (floats + kGrain - 1) / kGrain;
}

/// As members tell each other of a term; kNumbers doubles, all of which hold these numbers exactly.
struct ToldTerm {
  int64_t first;
  int level;
  double sum;
};
constexpr size_t kNumbers = 3;

}  // namespace

GradientNorm::GradientNorm(const ModelLayout& layout, int slot, std::span<Worker* const> workers)
    : grains_(grains_of(layout.whole().trained())) {
  std::vector<std::vector<Run>> runs(static_cast<size_t>(layout.slots()));
  layout.for_each_piece({0, layout.whole().trained()}, [&](const ModelLayout::Piece& piece) {
    auto& those = runs[static_cast<size_t>(piece.slot)];
    const int64_t size = grains_of(piece.on_slot.size()) * kGrain;  // with the zeros behind a parameter
    const bool goes_on = !those.empty() && those.back().on_slot.end == piece.on_slot.begin &&
                         those.back().at + those.back().on_slot.size() == piece.at;
    if (goes_on)
      those.back().on_slot.end += size;
    else
      those.push_back({{piece.on_slot.begin, piece.on_slot.begin + size}, piece.at});
  });
  for (const auto& those : runs) {
    size_t terms = 0;  // a run has two of each level at most
    for (const Run& run : those)
      terms += 2 * static_cast<size_t>(std::bit_width(static_cast<uint64_t>(grains_of(run.on_slot.size()))));
    most_terms_ = std::max(most_terms_, terms);
  }
  runs_ = std::move(runs[static_cast<size_t>(slot)]);
  for (Worker* worker : workers) sums_.push_back(worker->context().allocate(most_terms_ * sizeof(double)));
}

/// The largest aligned powers of two from left to right; the last one of all may reach beyond the end.
void GradientNorm::add_terms(std::vector<Term>& terms, const Run& run, int64_t grains) {
  int64_t first = run.at / kGrain, on_slot = run.on_slot.begin;
  const int64_t end = first + grains_of(run.on_slot.size());
  while (first < end) {
    const auto left = static_cast<uint64_t>(end - first);
    const int fits = end == grains ? std::bit_width(left - 1) : std::bit_width(left) - 1;
    const int level = first == 0 ? fits : std::min(fits, std::countr_zero(static_cast<uint64_t>(first)));
    const int64_t size = std::min(int64_t{1} << level, end - first);
    terms.push_back({{on_slot, std::min(on_slot + size * kGrain, run.on_slot.end)}, first, level});
    first += size;
    on_slot += size * kGrain;
  }
}

std::vector<GradientNorm::Term> GradientNorm::terms_of(Range mine) const {
  std::vector<Term> terms;
  for (const Run& run : runs_)
    if (const Range part = overlap(mine, run.on_slot); part.size() > 0)
      add_terms(terms, {part, run.at + (part.begin - run.on_slot.begin)}, grains_);
  return terms;
}

double GradientNorm::sum_of_squares(Worker& worker, Collective& everyone, const float* gradient,
                                    Range mine) const {
  const std::vector<Term> terms = terms_of(mine);
  auto* const on_device = static_cast<double*>(sums_[static_cast<size_t>(worker.rank())].data());
  for (size_t i = 0; i < terms.size(); ++i)
    worker.ops().sum_of_squares(gradient + (terms[i].on_slot.begin - mine.begin), on_device + i,
                                terms[i].on_slot.size());
  std::vector<double> sums(terms.size());
  if (!terms.empty()) worker.context().copy_to_host(sums.data(), on_device, sums.size() * sizeof(double));

  std::vector<double> told(most_terms_ * kNumbers, -1.0);  // a level of -1: no term
  for (size_t i = 0; i < terms.size(); ++i) {
    told[kNumbers * i] = static_cast<double>(terms[i].first);
    told[kNumbers * i + 1] = terms[i].level;
    told[kNumbers * i + 2] = sums[i];
  }
  std::vector<double> heard(told.size() * static_cast<size_t>(everyone.size()));
  everyone.all_gather(told, heard);

  std::vector<ToldTerm> all;
  for (size_t i = 0; i < heard.size(); i += kNumbers)
    if (heard[i + 1] >= 0)
      all.push_back({static_cast<int64_t>(heard[i]), static_cast<int>(heard[i + 1]), heard[i + 2]});
  std::sort(all.begin(), all.end(), [](const ToldTerm& a, const ToldTerm& b) { return a.first < b.first; });
  math::PairwiseSum sum;
  for (const ToldTerm& term : all) {
    if (term.first != sum.count())
      throw std::logic_error("a part of the gradient is with nobody, or with two");
    sum.add(term.sum, term.level);
  }
  return sum.total();
}

}  // namespace dtrain
