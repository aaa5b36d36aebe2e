// The regularizers and constraints of the parameters of one slot.
#pragma once

#include <vector>

#include "engine/state/parameter_memory.h"
#include "nn/parameters.h"
#include "ops/ops.h"

namespace dtrain {

/// Computes the penalties of trained parameters, and applies the constraints after an update. Each replica
/// can do this for its own part of the parameters.
class WeightRules {
 public:
  explicit WeightRules(const ParameterLayout& layout);

  bool has_penalties() const { return !penalties_.empty() || !orthogonal_.empty(); }
  /// Returns true if some penalties (orthogonal regularizers) need whole parameters.
  bool penalties_read_all() const { return !orthogonal_.empty(); }
  bool has_constraints() const { return !constraints_.empty(); }
  /// Returns whether a replica needs whole parameters to compute the penalties and constraints of its share.
  bool need_whole_parameters() const;

  /// Enqueues operations that add the penalties of `range` to *total (device memory). A penalty that needs a
  /// whole parameter is added if the parameter begins in `range`. In this case, `memory` must contain the
  /// whole parameter.
  void add_penalties(Ops& ops, const ParameterMemory& memory, Range range, double* total) const;
  /// Enqueues operations that add the gradients of the penalties to the summed gradient of `range`. To be
  /// called before the gradient is scaled. `row_weights`: the sum of the weights of all rows, in device
  /// memory; null if rows have no weights.
  void add_penalty_gradients(Ops& ops, const GradientRule& rule, const double* row_weights,
                             const StepState* state, const ParameterMemory& memory, float* gradient,
                             Range range) const;
  /// Enqueues operations that apply the constraints to the parameters in `range`. Elementwise constraints are
  /// applied to the elements in `range`. Other constraints are applied to each parameter that begins in
  /// `range`, and `memory` must contain the whole parameter.
  void constrain(Ops& ops, const StepState* state, const ParameterMemory& memory, Range range) const;

 private:
  struct Penalty {
    Range range;
    PenaltySpec spec;
  };
  struct OrthogonalRule {
    Range range;
    OrthogonalSpec spec;
  };
  struct Limit {
    Range range;
    ConstraintSpec spec;
    bool elementwise;
  };

  std::vector<Penalty> penalties_;          // runs of adjacent parameters with the same penalty
  std::vector<OrthogonalRule> orthogonal_;  // one for each parameter with an orthogonal regularizer
  std::vector<Limit> constraints_;          // one for each parameter with a constraint
};

}  // namespace dtrain
