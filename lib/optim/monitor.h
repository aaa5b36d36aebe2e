// Monitors a value that is computed in each epoch.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "config/registry.h"

namespace dtrain {

/// A value of an epoch, and whether larger values are better.
struct MonitoredNumber {
  double value = 0;
  bool larger_is_better = false;
};

/// Looks up a value of an epoch by name: "loss", "val_loss", or the name of a metric. Returns nullopt if the
/// name is unknown.
using MetricLookup = std::function<std::optional<MonitoredNumber>(const std::string&)>;

/// The direction in which a value improves. With `automatic`, MonitoredNumber::larger_is_better determines
/// the direction.
enum class MonitorMode { automatic, min, max };
template <>
inline const EnumNames<MonitorMode> names_of<MonitorMode> = {
    {MonitorMode::automatic, "auto"}, {MonitorMode::min, "min"}, {MonitorMode::max, "max"}};

/// Documentation of the option `mode`.
inline constexpr auto kMonitorMode =
    "Direction in which the metric improves. With `min`, smaller values are better. With `max`, larger "
    "values are better. `auto` means max for metrics such as accuracy, and min for losses and errors.";

/// Returns `mode`. If it is `automatic`, returns min or max, depending on `larger_is_better`.
MonitorMode resolved(MonitorMode mode, bool larger_is_better);

/// Returns a text that identifies the monitored metric and its direction, such as "min val_loss". The state
/// of a run contains this text and the best value. When a resumed run monitors a different metric or
/// direction, the text differs, and the old best value is not used. `mode` must not be automatic.
std::string watched(MonitorMode mode, const std::string& monitor);

/// Returns true if `value` is better than `best` by more than `min_delta`. Any number is better than NaN.
/// `mode` must not be automatic.
bool improves(double value, double best, MonitorMode mode, double min_delta = 0);

}  // namespace dtrain
