// Norm of a gradient whose parts are spread over several workers.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "collective/collective.h"
#include "engine/update/pairwise_terms.h"
#include "engine/worker.h"
#include "nn/parameters.h"

namespace dtrain {

/// Sums the squares of the whole model's gradient. Each slot has one object, which serves all workers of the
/// slot; each worker's thread passes its own worker. The result is bit-identical for any division of the
/// gradient among slots and replicas (ops/math/pairwise.h).
class GradientNorm {
 public:
  /// `workers`: the workers that update the slot's parameters, by replica.
  GradientNorm(const ModelLayout& layout, int slot, std::span<Worker* const> workers);

  /// Returns the sum over all ranks of `everyone`. `gradient`: the gradient of the range `mine` of the slot's
  /// layout, in the memory of `worker`. `mine` must be within the trained parameters. Each element of the
  /// model's gradient must be in the range of exactly one rank.
  double sum_of_squares(Worker& worker, Collective& everyone, const float* gradient, Range mine) const;

 private:
  /// A run of trained parameters that are contiguous both on the slot and in the whole layout.
  struct Run {
    Range on_slot;
    int64_t at;  // offset of the first element in the whole layout
  };

  std::vector<Run> runs_;
  int64_t grains_;            // number of grains (PairwiseTerm) in the whole layout
  size_t most_terms_ = 0;     // maximum number of terms of a worker, over all slots
  std::vector<Buffer> sums_;  // partial sums of each worker, indexed by rank
};

}  // namespace dtrain
