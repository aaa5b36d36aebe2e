// Updates parameters from gradients, independently of the memory that holds them.
#pragma once

#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collective/collective.h"
#include "engine/state/parameter_memory.h"
#include "engine/update/pairwise_terms.h"
#include "engine/update/weight_rules.h"
#include "nn/parameters.h"
#include "ops/ops.h"
#include "optim/optimizer.h"

namespace dtrain {

/// Name of the slot with the moving average of the weights (train.callbacks: ema).
inline constexpr std::string_view kAverage = "average";

/// Updates the parameters in a range of the layout: trained parameters by the optimizer's rule, statistics by
/// moving averages.
class Update {
 public:
  struct Options {
    GradientRule gradient_rule;
    float clip_value = INFINITY;         // maximum absolute value of a gradient element
    std::optional<float> average_decay;  // decay of the moving average of the weights, if one is kept
  };
  /// Keeps a reference to the layout. `optimizer` may be null.
  Update(const ParameterLayout& layout, const Optimizer* optimizer, const Options& options);

  /// Sets the step at which the optimizer state of some parameters was created. `since`: for each of these
  /// parameters (by path), the number of steps that the run had done at that time. The number is 0 for all
  /// other parameters. To be called before the first update.
  void set_slots_since(const std::map<std::string, int64_t>& since);

  /// The optimizer's slots, followed by kAverage if an average of the weights is kept.
  const std::vector<SlotLayout>& slots() const { return slots_; }

  bool has_average() const { return options_.average_decay.has_value(); }
  /// Returns true if the gradient's norm is needed: for clipping, or to detect float16 overflow.
  bool needs_norm() const { return gradient_rule().clip_norm > 0 || gradient_rule().dynamic_scaling; }
  /// Returns true if rows have weights. The gradient is then divided by the sum of all row weights.
  bool is_weighted() const { return gradient_rule().is_weighted; }
  /// The regularizers and constraints of the parameters.
  const WeightRules& weight_rules() const { return weight_rules_; }
  float clip_value() const { return options_.clip_value; }
  const GradientRule& gradient_rule() const { return options_.gradient_rule; }
  /// Returns the part of `range` that contains trained parameters. Norms are computed over this part only.
  Range trained(Range range) const;

  /// Returns true if the rule uses norms of whole parameters (RuleTraits::finds_direction). In this case, the
  /// update has two phases, find_directions() and apply(). Between the phases, the ranks must add their
  /// partial sums of squares.
  bool needs_directions() const { return traits_of(rule_).finds_direction; }
  /// Returns true if the ranges of updates must consist of whole parameters (RuleTraits::factors).
  bool needs_whole_parameters() const { return traits_of(rule_).factors; }
  /// Returns the number of sums of squares that apply() reads if needs_directions() is true. There are two
  /// sums for each trained parameter: one for the parameter, and one for its direction.
  size_t squares() const { return 2 * parameters_.size(); }
  /// Returns the terms of the sums of squares that are within `range`, in order. If `range` is the whole
  /// layout, each sum has one term. PairwiseTerm::values contains offsets in the layout.
  std::vector<PairwiseTerm> terms(Range range) const;
  /// Enqueues the first phase of the update of `range`: updates the slots, replaces `gradient` by the
  /// direction, and writes the sum of squares of terms[i] to squares[i] (device memory). `gradient`: the
  /// gradient of `range`. `terms`: the result of terms(range). If needs_whole_parameters() is true, `range`
  /// must consist of whole parameters.
  void find_directions(Ops& ops, const StepState* state, const ParameterMemory& memory, float* gradient,
                       Range range, std::span<const PairwiseTerm> terms, double* squares) const;
  /// Enqueues the update of `range`, which must be stored in `memory`. `gradient`: the gradient of `range`.
  /// `squares`: sums of squares of whole parameters; only read if needs_directions() is true.
  void apply(Ops& ops, const StepState* state, const ParameterMemory& memory, const float* gradient,
             Range range, const double* squares) const;

 private:
  struct Group {
    Range range;
    GroupRule rule;
  };
  struct Parameter {
    Range range;  // elements, including alignment padding
    Shape shape;
    GroupRule rule;
  };
  struct Statistics {
    Range range;
    float momentum;
  };

  void add_trained(const std::map<std::string, int64_t>& slots_since);
  void add_statistics();
  /// One pointer into each slot of the optimizer's rule.
  struct Slots {
    std::array<float*, kMostSlots> at = {};
    size_t count = 0;
    std::span<float* const> span() const { return {at.data(), count}; }
  };
  Slots slots_at(const ParameterMemory& memory, int64_t begin) const;
  void find_elementwise_directions(Ops& ops, const StepState* state, const ParameterMemory& memory,
                                   float* gradient, Range range) const;
  void find_factored_directions(Ops& ops, const StepState* state, const ParameterMemory& memory,
                                float* gradient, Range range) const;
  void apply_directions(Ops& ops, const StepState* state, const ParameterMemory& memory,
                        const float* directions, Range range, const double* squares) const;
  void update_average(Ops& ops, const StepState* state, const ParameterMemory& memory, Range range) const;

  const ParameterLayout& layout_;
  const WeightRules weight_rules_;
  OptimizerRule rule_;
  Options options_;
  std::vector<SlotLayout> slots_;
  std::vector<Group> groups_;  // runs of parameters with the same training options, in the layout's order
  std::vector<Parameter> parameters_;   // each trained parameter; empty if needs_directions() is false
  std::vector<Statistics> statistics_;  // runs of statistics with the same momentum
};

}  // namespace dtrain
