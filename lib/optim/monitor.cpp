#include "optim/monitor.h"

#include <cmath>

namespace dtrain {

namespace {

bool larger_is_better(MonitorMode mode, const std::string& monitor) {
  if (mode != MonitorMode::automatic) return mode == MonitorMode::max;
  return monitor.find("acc") != std::string::npos || monitor.find("top_k") != std::string::npos;
}

}  // namespace

std::string watched(MonitorMode mode, const std::string& monitor) {
  return (larger_is_better(mode, monitor) ? "max " : "min ") + monitor;
}

bool improves(double value, double best, MonitorMode mode, const std::string& monitor, double min_delta) {
  if (std::isnan(best)) return !std::isnan(value);
  return larger_is_better(mode, monitor) ? value > best + min_delta : value < best - min_delta;
}

}  // namespace dtrain
