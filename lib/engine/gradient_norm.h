// The norm of a gradient whose parts are with several workers.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "collective/collective.h"
#include "engine/pairwise_terms.h"
#include "engine/worker.h"
#include "nn/parameters.h"

namespace dtrain {

/// Sums the squares of the whole model's gradient, as it lies in the layout of one slot, whoever has which
/// part: neither slots nor replicas nor parts of them change a bit of it (ops/math/pairwise.h). One object
/// for the workers of a slot; each worker's thread calls with its own.
class GradientNorm {
 public:
  /// `workers`: those that sum, by replica.
  GradientNorm(const ModelLayout& layout, int slot, std::span<Worker* const> workers);

  /// The sum over all parts. `gradient`: of the range `mine` of the slot's layout, trained parameters only,
  /// in the memory of `worker`. Each element is in one part of `everyone`'s.
  double sum_of_squares(Worker& worker, Collective& everyone, const float* gradient, Range mine) const;

 private:
  /// Trained parameters that are neighbours on the slot and in the whole layout.
  struct Run {
    Range on_slot;
    int64_t at;  // where the whole layout has its first
  };

  std::vector<Run> runs_;
  int64_t grains_;            // of the whole layout
  size_t most_terms_ = 0;     // that a worker of any slot has
  std::vector<Buffer> sums_;  // of a worker's terms, by rank
};

}  // namespace dtrain
