#include "optim/monitor.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

namespace dtrain {

namespace {

bool larger_is_better(MonitorMode mode, const std::string& monitor) {
  if (mode != MonitorMode::automatic) return mode == MonitorMode::max;
  constexpr std::array<std::string_view, 9> kLarger{
      "acc", "top_k", "precision", "recall", "f1_score", "auc", "mean_iou", "r2_score", "cosine_similarity"};
  return std::any_of(kLarger.begin(), kLarger.end(),
                     [&](std::string_view part) { return monitor.find(part) != std::string::npos; });
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
