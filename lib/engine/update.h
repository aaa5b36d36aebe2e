// From gradients to the next step's parameters, in whatever memory they are.
#pragma once

#include <cmath>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collective/collective.h"
#include "engine/pairwise_terms.h"
#include "engine/parameter_memory.h"
#include "nn/parameters.h"
#include "ops/ops.h"
#include "optim/optimizer.h"

namespace dtrain {

/// The slot of the weights' running average (train.callbacks: ema).
inline constexpr std::string_view kAverage = "average";

/// What an update does to the parameters in a range of the layout: the optimizer's rule to those that are
/// trained, moving averages to statistics.
class Update {
 public:
  struct Options {
    GradientRule gradient_rule;
    float clip_value = INFINITY;         // the greatest size of an element of the gradient
    std::optional<float> average_decay;  // of the weights' running average, where one is kept
  };
  /// Refers to the layout.
  Update(const ParameterLayout& layout, const Optimizer* optimizer, const Options& options);

  /// The steps that were done when the slots of these parameters (by path) began; 0 for all others. Ahead of
  /// the first update.
  void set_slots_since(const std::map<std::string, int64_t>& since);

  /// The optimizer's slots, and behind them kAverage where an average of the weights is kept.
  const std::vector<Optimizer::Slot>& slots() const { return slots_; }

  bool has_average() const { return options_.average_decay.has_value(); }
  /// Whether the gradient's norm is asked for: to clip it, or to see that float16 held it.
  bool needs_norm() const { return gradient_rule().clip_norm > 0 || gradient_rule().dynamic_scaling; }
  /// Whether the rows have weights: the gradient is that of the mean by them once their sum is known.
  bool is_weighted() const { return gradient_rule().weights_per_sample != 0; }
  float clip_value() const { return options_.clip_value; }
  const GradientRule& gradient_rule() const { return options_.gradient_rule; }
  /// The part of `range` that the norm is over.
  Range trained(Range range) const;

  /// Whether the rule goes by the norms of whole parameters (LAMB). Then find_directions() comes before
  /// apply(), and between them the sums of squares of members' terms are added.
  bool needs_directions() const { return std::holds_alternative<LambRule>(rule_); }
  /// The number of sums of squares that apply() reads where needs_directions(): for each trained parameter,
  /// its own and its direction's.
  size_t squares() const { return 2 * parameters_.size(); }
  /// The terms of these sums that `range` has, in their order; of the whole layout one for each. Values
  /// count as the layout does.
  std::vector<PairwiseTerm> terms(Range range) const;
  /// Enqueues the first half of the update of `range`: the slots move, `gradient` (of `range`) becomes
  /// the direction, and squares[i] (device memory) the sum of squares of terms[i], which are those of
  /// `range`.
  void find_directions(Ops& ops, const StepState* state, const ParameterMemory& memory, float* gradient,
                       Range range, std::span<const PairwiseTerm> terms, double* squares) const;
  /// Enqueues the update of `range`, which `memory` holds, by its `gradient`. `squares`: of the whole
  /// parameters; read where needs_directions().
  void apply(Ops& ops, const StepState* state, const ParameterMemory& memory, const float* gradient,
             Range range, const double* squares) const;

 private:
  struct Group {
    Range range;
    GroupRule rule;
  };
  struct Parameter {
    Range range;
    float learning_rate_factor;
  };
  struct Statistics {
    Range range;
    float momentum;
  };

  void add_trained(const std::map<std::string, int64_t>& slots_since);
  void add_statistics();
  void update_group(Ops& ops, const StepState* state, const ParameterMemory& memory,
                    const OptimizerRule& rule, const float* gradient, Range range,
                    const GroupRule& group) const;
  void apply_directions(Ops& ops, const StepState* state, const ParameterMemory& memory,
                        const float* directions, Range range, const double* squares) const;
  void update_average(Ops& ops, const StepState* state, const ParameterMemory& memory, Range range) const;

  const ParameterLayout& layout_;
  OptimizerRule rule_;
  Options options_;
  std::vector<Optimizer::Slot> slots_;
  std::vector<Group> groups_;           // runs of parameters that are trained alike, in the layout's order
  std::vector<Parameter> parameters_;   // each trained parameter, where their norms are asked for
  std::vector<Statistics> statistics_;  // runs of moving averages
};

}  // namespace dtrain
