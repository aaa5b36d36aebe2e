// How busy a run's devices are, in a word for its progress.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "device/load.h"

namespace dtrain {

/// Looks once a second at most, so that it may be asked at every step.
class Utilisation {
 public:
  /// `gpus`: whether this process computes on GPUs, which are looked at then; else the cores that it may use.
  explicit Utilisation(bool gpus);
  /// "cpu 88 %" is the mean over the cores since the last look, "gpu 97 %" that over this process's GPUs of
  /// the last second or so; "" until it is known, and where nobody says.
  const std::string& text();

 private:
  using Clock = std::chrono::steady_clock;

  std::unique_ptr<GpuWatch> gpus_;  // null where the CPU computes
  CpuWatch cpu_;
  Clock::time_point looked_;
  std::string text_;
};

}  // namespace dtrain
