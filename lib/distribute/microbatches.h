// How a batch is cut into what the replicas work through at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>

#include "collective/collective.h"

namespace dtrain {

/// The microbatches of one replica, in order: ranges of the batch, of which some may be empty. The largest is
/// the first.
class Microbatches {
 public:
  /// `most`: into how many microbatches a replica's share is cut, unless it has fewer samples (an empty share
  /// is one empty microbatch). `together`: the batch is cut into microbatches, and each of them into shares,
  /// so that the replicas' microbatches of a number are what one device's would be; all have as many.
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
  /// How many samples those that are not empty have: one number, or two that differ by one.
  std::set<int64_t> sizes() const {
    std::set<int64_t> all{(*this)[0].size(), (*this)[count_ - 1].size()};
    all.erase(0);
    return all;
  }

 private:
  Range share() const { return part_of(batch_, rank_, replicas_); }
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
