// How gradients move weights: Keras's rules.
#pragma once

#include <string>
#include <vector>

#include "config/kinds.h"
#include "ops/specs.h"
#include "optim/schedule.h"

namespace dtrain {

/// Options only; the state is in slots, flat buffers as long as the trained weights, which others own.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  struct Slot {
    std::string name;  // "momentum", "velocity": as Keras calls it
    float initial = 0;
  };
  virtual std::vector<Slot> slots() const = 0;
  virtual const Schedule& learning_rate() const = 0;
  /// The update of the step numbered `iteration`, from 1, at this rate; the slots in the order of slots().
  virtual OptimizerStep step(int64_t iteration, double learning_rate, double gradient_scale) const = 0;
};

template <>
const KindTable<Optimizer>& kinds<Optimizer>();

}  // namespace dtrain
