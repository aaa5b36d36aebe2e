// Learning rate schedules.
#pragma once

#include <cstdint>
#include <string>

#include "base/json.h"
#include "config/registry.h"
#include "optim/monitor.h"

namespace dtrain {

/// The length of a run in steps.
struct RunLength {
  int64_t steps_per_epoch = 1;
  int64_t steps = 1;  // steps of the whole run: steps_per_epoch * train.epochs
  /// The difference between steps_per_epoch and the actual number of steps of an epoch, summed over the
  /// finished epochs. It is not 0 if the run was resumed with a different batch size or different data. See
  /// position().
  int64_t shift = 0;
};

/// A learning rate schedule. Its only state is the JSON value `state`, which is null at the start and is
/// stored in checkpoints.
class Schedule {
 public:
  virtual ~Schedule() = default;
  /// Returns the learning rate of step `step`, counted from 0.
  virtual double at(int64_t step, const RunLength& run, const Json& state) const = 0;
  /// Returns the state after an epoch. `metric` looks up a value by its name, such as "val_loss", and returns
  /// nullopt if the name is unknown. If the user should be told about a change, the function sets `message`.
  virtual Json after_epoch(Json state, const MetricLookup& /*metric*/, std::string& /*message*/) const {
    return state;
  }
  /// Returns the name of the metric that the schedule monitors, so that the name can be checked before the
  /// run. Returns "" if the schedule monitors no metric. Only reduce_on_plateau monitors a metric.
  virtual std::string monitor() const { return ""; }
};

template <>
const Registry<Schedule>& registry<Schedule>();

/// An option whose value is a schedule or a number. A number means a constant rate. Error messages about a
/// number contain the name of the option.
template <>
struct Codec<Configured<Schedule>> {
  static bool parse(const ConfigNode& node, const std::string& where, Configured<Schedule>& out,
                    Diagnostics& diagnostics);
  static ConfigNode write(const Configured<Schedule>& value) { return value.resolved; }
  static Json schema() { return registry<Schedule>().json_schema(); }
};

}  // namespace dtrain
