// Describes the utilization of a run's devices in a short text, which is shown with the progress of the run.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "device/load.h"

namespace dtrain {

/// Measures the utilization of the CPU cores or the GPUs. text() may be called at every step, because it
/// measures at most once per second.
class Utilisation {
 public:
  /// `gpus`: true to show the utilization of the GPUs on which this process computes; false to show the
  /// utilization of its CPU cores.
  explicit Utilisation(bool gpus);
  /// Returns "cpu 88 %", the mean over the cores since the last measurement, or "gpu 97 %", the mean over
  /// this process's GPUs in about the last second. Returns "" before the first measurement, and if the driver
  /// does not report the utilization.
  const std::string& text();

 private:
  using Clock = std::chrono::steady_clock;

  std::unique_ptr<GpuWatch> gpus_;  // null if the CPU computes
  CpuWatch cpu_;
  Clock::time_point looked_;
  std::string text_;
};

}  // namespace dtrain
