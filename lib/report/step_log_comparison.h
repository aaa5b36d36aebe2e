// Compares two step logs (from `dtrain fit --step-log`).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace dtrain {

/// Holds the differences between the losses of two step logs.
struct StepLogComparison {
  /// A step with different losses.
  struct Step {
    int64_t step;
    double a, b;
  };
  int64_t common = 0;  ///< number of steps that both logs have
  int64_t different = 0;
  int64_t only_a = 0, only_b = 0;
  std::optional<Step> first;  ///< the first step with different losses
  double largest = 0;         ///< the largest |a - b| of different losses; infinity if one of them is NaN
  bool is_equal() const { return different == 0 && only_a == 0 && only_b == 0; }
};

/// Returns true if a file starts like the output of `--step-log`.
bool is_step_log(const std::string& path);

/// Compares two step logs. Two losses are equal if |a - b| <= tolerance * max(1, |b|), or if both are NaN.
/// Throws UserError if a line does not belong to a step log.
StepLogComparison compare_step_logs(const std::string& a, const std::string& b, double tolerance);

}  // namespace dtrain
