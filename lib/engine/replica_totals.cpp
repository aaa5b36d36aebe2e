#include "engine/replica_totals.h"

#include <algorithm>

#include "engine/update/process_totals.h"

namespace dtrain {

std::vector<const double*> ReplicaTotals::by_slot(int back) {
  std::vector<const double*> all;
  for (const auto& replica : replicas_)
    for (const auto& executor : replica->executors()) all.push_back(executor->totals(back).data());
  if (!plan_.has_divided_replicas()) return all;
  const auto slots = static_cast<size_t>(plan_.slots());
  // Maximum number of slots in one process, over all replicas.
  const auto most = static_cast<size_t>(plan_.slots_of(0).size()) * replicas_.size();
  std::vector<double> mine(most * count_), gathered(mine.size() * static_cast<size_t>(plan_.world.size()));
  for (size_t i = 0; i < all.size(); ++i) std::copy_n(all[i], count_, mine.data() + i * count_);
  plan_.world.all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(gathered)));
  slot_totals_.resize(replicas_.size() * slots * count_);
  all.clear();
  for (size_t rank = 0; rank < replicas_.size(); ++rank)
    for (int process = 0; process < plan_.world.size(); ++process) {
      const Range its = plan_.slots_of(process);
      const auto size = static_cast<size_t>(its.size());
      const double* const from =
          gathered.data() + (static_cast<size_t>(process) * most + rank * size) * count_;
      double* const to = slot_totals_.data() + (rank * slots + static_cast<size_t>(its.begin)) * count_;
      std::copy_n(from, size * count_, to);
      for (size_t slot = 0; slot < size; ++slot) all.push_back(to + slot * count_);
    }
  return all;
}

std::vector<const double*> ReplicaTotals::read(int back) {
  std::vector<const double*> all = by_slot(back);
  const auto slots = static_cast<size_t>(plan_.slots());
  if (slots == 1) return all;
  std::vector<const double*> by_replica;
  sums_.resize(replicas_.size());
  for (size_t rank = 0; rank < replicas_.size(); ++rank) {
    sums_[rank].resize(count_);
    sum_over_slots(std::span(all).subspan(rank * slots, slots), sums_[rank]);
    by_replica.push_back(sums_[rank].data());
  }
  return by_replica;
}

}  // namespace dtrain
