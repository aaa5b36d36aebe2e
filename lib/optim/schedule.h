// The learning rate as a function of the step.
#pragma once

#include <cstdint>
#include <string>

#include "base/json.h"
#include "config/registry.h"
#include "optim/monitor.h"

namespace dtrain {

/// How long a run is, in steps.
struct RunLength {
  int64_t steps_per_epoch = 1;
  int64_t steps = 1;  // of all of its epochs (train.epochs)
};

/// A schedule has no state but what `state` carries (null at the start), which the checkpoint keeps.
class Schedule {
 public:
  virtual ~Schedule() = default;
  /// The rate of step `step`, from 0.
  virtual double at(int64_t step, const RunLength& run, const Json& state) const = 0;
  /// What the state becomes after an epoch; `metric` looks a value up by name ("val_loss"), nothing where
  /// there is none. `message` is set where the user should hear of a change.
  virtual Json after_epoch(Json state, const MetricLookup& /*metric*/, std::string& /*message*/) const {
    return state;
  }
  /// The metric that the schedule watches (reduce_on_plateau), to be checked before the run; "" for none.
  virtual std::string monitor() const { return ""; }
  /// What an optimizer of Keras has for its learning_rate: a number, or a schedule's {module, class_name,
  /// config}, which counts steps.
  virtual Json keras_config(const RunLength& run, const Json& state) const = 0;
};

/// A schedule of keras.optimizers.schedules.
Json keras_schedule(const std::string& class_name, Json config);

template <>
const Registry<Schedule>& registry<Schedule>();

}  // namespace dtrain
