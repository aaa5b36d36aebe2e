// Optimizers with Keras's update rules.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/shape.h"
#include "config/registry.h"
#include "ops/math/optimizers.h"
#include "optim/schedule.h"

namespace dtrain {

/// The shape of an optimizer slot, relative to the shape of its weight.
enum class SlotShape {
  weight,        // the shape of the weight
  row_means,     // [..., m] for a weight of [..., m, n]; a weight with fewer than two axes has no slot
  column_means,  // [..., n] for a weight of [..., m, n]; a weight with fewer than two axes has no slot
  vector,        // the shape of the weight if it has fewer than two axes; other weights have no slot
};

/// The options and the update rule of an optimizer. The state of the optimizer is not in this object: it is
/// in flat buffers, one per slot (see SlotLayout).
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  struct Slot {
    std::string name;  // Keras's name: "momentum", "velocity"
    float initial = 0;
    SlotShape shape = SlotShape::weight;
    /// Returns the shape of the slot's array for a weight of this shape. Returns nullopt if the weight has no
    /// such slot.
    std::optional<Shape> shape_for(const Shape& weight) const;
  };
  virtual std::vector<Slot> slots() const = 0;
  virtual const Schedule& learning_rate() const = 0;
  virtual double weight_decay() const = 0;
  /// Returns the update rule. The arrays that the rule uses are the slots, in the order of slots(). If
  /// RuleTraits::finds_direction is true, one more array follows, for the direction of the step.
  virtual OptimizerRule rule() const = 0;
  /// Returns the numbers that the rule needs for step `step`, counted from 0, with this learning rate.
  StepNumbers numbers(int64_t step, double learning_rate) const {
    return {.step = static_cast<uint64_t>(step),
            .learning_rate = learning_rate,
            .decay = static_cast<float>(learning_rate * weight_decay())};
  }
};

template <>
const Registry<Optimizer>& registry<Optimizer>();

}  // namespace dtrain
