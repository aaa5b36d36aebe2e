// From gradients to the next step's parameters, in whatever memory they are.
#pragma once

#include <span>
#include <vector>

#include "collective/collective.h"
#include "nn/parameters.h"
#include "ops/ops.h"
#include "optim/optimizer.h"
#include "train/parameter_memory.h"

namespace dtrain {

/// What an update does to the parameters in a range of the layout: the optimizer's rule to those that are
/// trained, moving averages to statistics.
class Update {
 public:
  Update(const ParameterLayout& layout, const Optimizer& optimizer, const GradientRule& gradient_rule);

  /// Whether the gradient's norm is asked for: to clip it, or to see that float16 held it.
  bool needs_norm() const { return gradient_rule_.clip_norm > 0 || gradient_rule_.dynamic_scaling; }
  const GradientRule& gradient_rule() const { return gradient_rule_; }
  /// The part of `range` that the norm is over.
  Range trained(Range range) const;
  /// Enqueues the update of `range` in `memory` by `gradient` (a whole layout.with_gradient(); the part in
  /// `range` is read).
  void apply(Ops& ops, const StepState* state, const ParameterMemory& memory, const float* gradient,
             Range range) const;

 private:
  struct Statistics {
    Range range;
    float momentum;
  };

  int64_t trained_;
  OptimizerRule rule_;
  GradientRule gradient_rule_;
  std::vector<Statistics> statistics_;  // runs of moving averages
};

}  // namespace dtrain
