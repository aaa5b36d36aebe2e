// How gradients move weights: Keras's rules.
#pragma once

#include <string>
#include <vector>

#include "config/registry.h"
#include "ops/specs.h"
#include "optim/schedule.h"

namespace dtrain {

/// An optimizer holds options only; its state is in slots, flat buffers as long as the trained weights, which
/// others own.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  struct Slot {
    std::string name;  // "momentum", "velocity": as Keras calls it
    float initial = 0;
  };
  virtual std::vector<Slot> slots() const = 0;
  virtual const Schedule& learning_rate() const = 0;
  /// The rule of the update, which finds the slots in the order of slots().
  virtual OptimizerRule rule() const = 0;
  /// The numbers that the rule is applied with in step `step`, from 0, at this learning rate.
  virtual StepNumbers numbers(int64_t step, double learning_rate) const = 0;
  /// Keras's {class_name, config} for the checkpoint's training_config, in a form that both Keras 2 and 3
  /// read; null where they have no such form. `schedule` is the state of the learning rate's schedule.
  virtual Json keras_config(const RunLength& run, const Json& schedule) const = 0;
};

template <>
const Registry<Optimizer>& registry<Optimizer>();

}  // namespace dtrain
