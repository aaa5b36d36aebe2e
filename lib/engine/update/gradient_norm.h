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

/// Sums the squares of the whole model's gradient, stored in the layout of one slot. The result is
/// bit-identical for any division of the gradient among slots and replicas (ops/math/pairwise.h). One object
/// serves all workers of a slot; each worker's thread passes its own worker.
class GradientNorm {
 public:
  /// `workers`: the slot's workers that sum, by replica.
  GradientNorm(const ModelLayout& layout, int slot, std::span<Worker* const> workers);

  /// Returns the sum over the parts of all ranks. `gradient`: the range `mine` of the slot's layout, within
  /// the trained parameters, in the memory of `worker`. Each element belongs to the part of exactly one rank
  /// of `everyone`.
  double sum_of_squares(Worker& worker, Collective& everyone, const float* gradient, Range mine) const;

 private:
  /// Trained parameters that are contiguous both on the slot and in the whole layout.
  struct Run {
    Range on_slot;
    int64_t at;  // offset of the first element in the whole layout
  };

  std::vector<Run> runs_;
  int64_t grains_;            // number of grains in the whole layout
  size_t most_terms_ = 0;     // upper bound of the number of terms of any worker on any slot
  std::vector<Buffer> sums_;  // a worker's partial sums, by rank
};

}  // namespace dtrain
