// Watching one of an epoch's numbers.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "config/registry.h"

namespace dtrain {

/// One of an epoch's numbers, and which way it gets better.
struct MonitoredNumber {
  double value = 0;
  bool larger_is_better = false;
};

/// Looks up one of an epoch's numbers by name: "loss", "val_loss", a metric's.
using MetricLookup = std::function<std::optional<MonitoredNumber>(const std::string&)>;

/// Whether smaller or larger is better; `automatic` is as the number has it.
enum class MonitorMode { automatic, min, max };
template <>
inline const EnumNames<MonitorMode> names_of<MonitorMode> = {
    {MonitorMode::automatic, "auto"}, {MonitorMode::min, "min"}, {MonitorMode::max, "max"}};

/// The option `mode` in the reference.
inline constexpr auto kMonitorMode =
    "whether smaller (min) or larger (max) is better; auto: as the metric has it, and losses are better "
    "smaller";

/// `mode` with min or max in the place of `automatic`.
MonitorMode resolved(MonitorMode mode, bool larger_is_better);

/// What a best value is the best of: "min val_loss". A state that keeps a best value keeps this beside it,
/// since a resumed run may be asked to watch another metric, or to watch it the other way. `mode` is
/// resolved.
std::string watched(MonitorMode mode, const std::string& monitor);

/// True if `value` is better than `best` by more than `min_delta`; anything is better than NaN. `mode` is
/// resolved.
bool improves(double value, double best, MonitorMode mode, double min_delta = 0);

}  // namespace dtrain
