#include "optim/monitor.h"

#include <cmath>

namespace dtrain {

bool improves(double value, double best, MonitorMode mode, const std::string& monitor, double min_delta) {
  if (std::isnan(best)) return !std::isnan(value);
  if (mode == MonitorMode::automatic) {
    const bool larger =
        monitor.find("acc") != std::string::npos || monitor.find("top_k") != std::string::npos;
    mode = larger ? MonitorMode::max : MonitorMode::min;
  }
  return mode == MonitorMode::max ? value > best + min_delta : value < best - min_delta;
}

}  // namespace dtrain
