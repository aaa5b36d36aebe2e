// Optimizers: Keras's update rules.
#pragma once

#include <string>
#include <vector>

#include "config/registry.h"
#include "ops/math/optimizers.h"
#include "optim/schedule.h"

namespace dtrain {

/// Holds only options. The state is in slots: flat buffers, each as long as the trained weights, owned
/// elsewhere.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  struct Slot {
    std::string name;  // Keras's name: "momentum", "velocity"
    float initial = 0;
  };
  virtual std::vector<Slot> slots() const = 0;
  virtual const Schedule& learning_rate() const = 0;
  virtual double weight_decay() const = 0;
  /// Returns the update rule. It expects the slots in the order of slots(), followed by the direction if it
  /// finds one.
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
