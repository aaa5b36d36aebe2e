// Monitoring a value of each epoch.
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

/// Looks up a value of an epoch by name: "loss", "val_loss", or a metric's name. Returns nullopt if unknown.
using MetricLookup = std::function<std::optional<MonitoredNumber>(const std::string&)>;

/// The direction in which a value improves. With `automatic`, MonitoredNumber::larger_is_better decides.
enum class MonitorMode { automatic, min, max };
template <>
inline const EnumNames<MonitorMode> names_of<MonitorMode> = {
    {MonitorMode::automatic, "auto"}, {MonitorMode::min, "min"}, {MonitorMode::max, "max"}};

/// Documentation of the option `mode`.
inline constexpr auto kMonitorMode =
    "whether smaller (min) or larger (max) values are better; auto: max for metrics such as accuracy, min "
    "for losses and errors";

/// Returns `mode` with `automatic` replaced by min or max.
MonitorMode resolved(MonitorMode mode, bool larger_is_better);

/// Returns a text that identifies the monitored metric and its direction: "min val_loss". The state of a run
/// stores it with the best value, because a resumed run may monitor another metric or direction. `mode` must
/// be resolved.
std::string watched(MonitorMode mode, const std::string& monitor);

/// Returns true if `value` is better than `best` by more than `min_delta`; any number is better than NaN.
/// `mode` must be resolved.
bool improves(double value, double best, MonitorMode mode, double min_delta = 0);

}  // namespace dtrain
