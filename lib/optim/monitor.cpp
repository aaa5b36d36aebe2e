#include "optim/monitor.h"

#include <cmath>

namespace dtrain {

MonitorMode resolved(MonitorMode mode, bool larger_is_better) {
  if (mode != MonitorMode::automatic) return mode;
  return larger_is_better ? MonitorMode::max : MonitorMode::min;
}

std::string watched(MonitorMode mode, const std::string& monitor) {
  return (mode == MonitorMode::max ? "max " : "min ") + monitor;
}

bool improves(double value, double best, MonitorMode mode, double min_delta) {
  if (std::isnan(best)) return !std::isnan(value);
  return mode == MonitorMode::max ? value > best + min_delta : value < best - min_delta;
}

}  // namespace dtrain
