// Compares an exported model's outputs with dtrain's.
#pragma once

#include <string>
#include <vector>

#include "interop/exported_model.h"

namespace dtrain {

enum class ProbeTolerance { float32, float16 };

/// Returns the largest difference that counts as rounding. The difference is relative to the largest
/// magnitude in the probe's output, or to 1 if that magnitude is below 1.
constexpr float tolerance_of(ProbeTolerance tolerance) {
  return tolerance == ProbeTolerance::float16 ? 0.05f : 1e-4f;
}

/// Compares `outputs` with the outputs in model.probes. If they differ by more than rounding, or if only one
/// of two compared numbers is NaN, throws Error with `path`, the name of the output and the numbers.
void check_probes(const ExportedModel& model, const std::vector<std::vector<float>>& outputs,
                  ProbeTolerance tolerance, const std::string& path);

}  // namespace dtrain
