// Learning rate schedules.
#pragma once

#include <cstdint>
#include <string>

#include "base/json.h"
#include "config/registry.h"
#include "optim/monitor.h"

namespace dtrain {

/// The length of a run, in steps.
struct RunLength {
  int64_t steps_per_epoch = 1;
  int64_t steps = 1;  // steps of the whole run: steps_per_epoch * train.epochs
};

/// A schedule keeps no state except `state` (null at the start), which the checkpoint stores.
class Schedule {
 public:
  virtual ~Schedule() = default;
  /// Returns the rate of step `step`, counted from 0.
  virtual double at(int64_t step, const RunLength& run, const Json& state) const = 0;
  /// Returns the state after an epoch. `metric` looks up a value by name ("val_loss"); nullopt if unknown.
  /// Sets `message` if the user should be notified of a change.
  virtual Json after_epoch(Json state, const MetricLookup& /*metric*/, std::string& /*message*/) const {
    return state;
  }
  /// Returns the metric that the schedule monitors (reduce_on_plateau), to be checked before the run; "" for
  /// none.
  virtual std::string monitor() const { return ""; }
};

template <>
const Registry<Schedule>& registry<Schedule>();

/// An option that is a schedule or a number, which means a constant rate. Messages about a number name the
/// option.
template <>
struct Codec<Configured<Schedule>> {
  static bool parse(const ConfigNode& node, const std::string& where, Configured<Schedule>& out,
                    Diagnostics& diagnostics);
  static ConfigNode write(const Configured<Schedule>& value) { return value.resolved; }
  static Json schema() { return registry<Schedule>().json_schema(); }
};

}  // namespace dtrain
