// Watching one of an epoch's numbers.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "config/registry.h"

namespace dtrain {

/// Looks up one of an epoch's numbers by name: "loss", "val_loss", a metric's.
using MetricLookup = std::function<std::optional<double>(const std::string&)>;

/// Whether smaller or larger is better; `automatic` goes by the name (accuracies, top_k, F1, AUC and their
/// like: larger).
enum class MonitorMode { automatic, min, max };
template <>
inline const EnumNames<MonitorMode> names_of<MonitorMode> = {
    {MonitorMode::automatic, "auto"}, {MonitorMode::min, "min"}, {MonitorMode::max, "max"}};

/// What a best value is the best of: "min val_loss". A state that keeps a best value keeps this beside it,
/// since a resumed run may be asked to watch another metric, or to watch it the other way.
std::string watched(MonitorMode mode, const std::string& monitor);

/// True if `value` is better than `best` by more than `min_delta`; anything is better than NaN.
bool improves(double value, double best, MonitorMode mode, const std::string& monitor, double min_delta = 0);

}  // namespace dtrain
