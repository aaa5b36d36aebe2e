// Optimizers: Keras's update rules.
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
  row_means,     // [..., m] for a weight of [..., m, n]; none for weights of fewer than two axes
  column_means,  // [..., n] for a weight of [..., m, n]; none for weights of fewer than two axes
  vector,        // the shape of a weight of fewer than two axes; no slot for other weights
};

/// The options and the update rule of an optimizer. Its state is in slots, which are flat buffers of other
/// objects (SlotLayout describes them).
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  struct Slot {
    std::string name;  // Keras's name: "momentum", "velocity"
    float initial = 0;
    SlotShape shape = SlotShape::weight;
    /// Returns the shape of the slot's array for a weight; nullopt if it has none.
    std::optional<Shape> shape_for(const Shape& weight) const;
  };
  virtual std::vector<Slot> slots() const = 0;
  virtual const Schedule& learning_rate() const = 0;
  virtual double weight_decay() const = 0;
  /// Returns the update rule. It expects the slots in the order of slots(), followed by an array for the
  /// step's direction if RuleTraits::finds_direction is true.
  virtual OptimizerRule rule() const = 0;
  /// Returns the scalars of step `step` (from 0) at this learning rate.
  StepNumbers numbers(int64_t step, double learning_rate) const {
    return {.step = static_cast<uint64_t>(step),
            .learning_rate = learning_rate,
            .decay = static_cast<float>(learning_rate * weight_decay())};
  }
};

template <>
const Registry<Optimizer>& registry<Optimizer>();

}  // namespace dtrain
