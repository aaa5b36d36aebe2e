#include "engine/update/gradient_norm.h"

#include <algorithm>

#include "ops/math/pairwise.h"

namespace dtrain {

GradientNorm::GradientNorm(const ModelLayout& layout, int slot, std::span<Worker* const> workers)
    : grains_(grains_of(layout.whole().trained())) {
  std::vector<std::vector<Run>> runs(static_cast<size_t>(layout.slots()));
  layout.for_each_piece({0, layout.whole().trained()}, [&](const ModelLayout::Piece& piece) {
    auto& those = runs[static_cast<size_t>(piece.slot)];
    const int64_t size = grains_of(piece.on_slot.size()) * math::kSquaresGrain;  // size with padding
    const bool goes_on = !those.empty() && those.back().on_slot.end == piece.on_slot.begin &&
                         those.back().at + those.back().on_slot.size() == piece.at;
    if (goes_on)
      those.back().on_slot.end += size;
    else
      those.push_back({{piece.on_slot.begin, piece.on_slot.begin + size}, piece.at});
  });
  for (const auto& those : runs) {
    size_t terms = 0;
    for (const Run& run : those) terms += most_terms(grains_of(run.on_slot.size()));
    most_terms_ = std::max(most_terms_, terms);
  }
  runs_ = std::move(runs[static_cast<size_t>(slot)]);
  for (Worker* worker : workers) sums_.push_back(worker->context().allocate(most_terms_ * sizeof(double)));
}

double GradientNorm::sum_of_squares(Worker& worker, Collective& everyone, const float* gradient,
                                    Range mine) const {
  std::vector<PairwiseTerm> terms;
  for (const Run& run : runs_)
    if (const Range part = overlap(mine, run.on_slot); part.size() > 0)
      add_terms(terms, 0, part, (run.at + (part.begin - run.on_slot.begin)) / math::kSquaresGrain, grains_);
  auto* const on_device = static_cast<double*>(sums_[static_cast<size_t>(worker.rank())].data());
  std::vector<std::span<const float>> arrays;
  for (const PairwiseTerm& term : terms)
    arrays.emplace_back(gradient + (term.values.begin - mine.begin), static_cast<size_t>(term.values.size()));
  worker.ops().sums_of_squares(arrays, on_device);
  std::vector<double> sums(terms.size());
  if (!terms.empty()) worker.context().copy_to_host(sums.data(), on_device, sums.size() * sizeof(double));
  return sum_over_members(everyone, terms, sums, most_terms_, 1)[0];
}

}  // namespace dtrain
