// Divides a batch into the microbatches of each replica.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>

#include "collective/collective.h"

namespace dtrain {

/// The microbatches of one replica, in order. Each is a range of the batch. Ranges may be empty. The first
/// microbatch is the largest.
class Microbatches {
 public:
  /// `most`: maximum number of microbatches per replica. A replica with fewer samples has fewer microbatches;
  /// a replica without samples has a single empty microbatch. If `together` is true, the batch is first
  /// divided into microbatches, and then each microbatch is divided among the replicas. Together, the n-th
  /// microbatches of all replicas then form the n-th microbatch of a run on a single device, and all replicas
  /// have the same number of microbatches.
  Microbatches(int64_t batch, int64_t most, int rank, int replicas, bool together)
      : batch_(batch),
        rank_(rank),
        replicas_(replicas),
        together_(together),
        count_(static_cast<int>(std::clamp<int64_t>(together ? batch : share().size(), 1, most))) {}

  int count() const { return count_; }
  Range operator[](int number) const {
    return together_ ? within(part_of(batch_, number, count_), rank_, replicas_)
                     : within(share(), number, count_);
  }
  /// Returns the replica's part of the batch, for batches that are first divided among the replicas.
  Range share() const { return part_of(batch_, rank_, replicas_); }
  /// Returns the different sizes of the non-empty microbatches. There are at most two, and they differ by
  /// one.
  std::set<int64_t> sizes() const {
    std::set<int64_t> all{(*this)[0].size(), (*this)[count_ - 1].size()};
    all.erase(0);
    return all;
  }

 private:
  static Range within(Range whole, int index, int parts) {
    const Range part = part_of(whole.size(), index, parts);
    return {whole.begin + part.begin, whole.begin + part.end};
  }

  int64_t batch_;
  int rank_, replicas_;
  bool together_;
  int count_;
};

}  // namespace dtrain
