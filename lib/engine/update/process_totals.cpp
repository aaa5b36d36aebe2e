#include "engine/update/process_totals.h"

#include <algorithm>

namespace dtrain {

void sum_over_slots(std::span<const double* const> slots, std::span<double> sums) {
  std::fill(sums.begin(), sums.end(), 0.0);
  for (const double* const totals : slots)
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += totals[i];
}

ProcessTotals::ProcessTotals(const ReplicaRanks& ranks, int slots, int64_t totals, World& world)
    : slots_(slots),
      parts_(static_cast<size_t>(ranks.local() * slots)),
      sum_(world.background_sum_of_doubles(ranks, totals)) {
  const auto count = static_cast<size_t>(totals);
  if (slots > 1) by_replica_.assign(static_cast<size_t>(ranks.local()), std::vector<double>(count));
  for (const Range& node : subtrees(ranks.of(ranks.process), ranks.total()))
    nodes_.push_back({static_cast<size_t>(node.begin - ranks.first()), static_cast<size_t>(node.size()),
                      SumTree(static_cast<int>(node.size())), std::vector<double>(count)});
}

void ProcessTotals::add(int rank, int slot, const double* totals) {
  parts_[index_of(rank, slot)] = totals;
  if (++added_ % parts_.size() == 0) start();
}

void ProcessTotals::start() {
  const std::span<const double* const> parts = parts_;
  std::vector<const double*> replicas = parts_;
  for (size_t rank = 0; rank < by_replica_.size(); ++rank) {
    const auto slots = static_cast<size_t>(slots_);
    sum_over_slots(parts.subspan(rank * slots, slots), by_replica_[rank]);
    replicas[rank] = by_replica_[rank].data();
  }
  std::vector<double*> sums;
  for (Node& node : nodes_) {
    node.tree.add(std::span<const double* const>(replicas).subspan(node.first, node.replicas),
                  node.totals.data(), {0, static_cast<int64_t>(node.totals.size())});
    sums.push_back(node.totals.data());
  }
  sum_->start(sums);
}

size_t ProcessTotals::bytes() const {
  return sum_->bytes() + (by_replica_.size() + nodes_.size()) * sums().size() * sizeof(double);
}

}  // namespace dtrain
