// Compares an exported model's outputs with dtrain's.
#pragma once

#include <string>
#include <vector>

#include "interop/exported_model.h"

namespace dtrain {

enum class ProbeTolerance { float32, float16 };

/// Returns the largest difference that still counts as rounding, relative to the largest magnitude in the
/// probe's output or to 1, whichever is larger.
constexpr float tolerance_of(ProbeTolerance tolerance) {
  return tolerance == ProbeTolerance::float16 ? 0.05f : 1e-4f;
}

/// Compares outputs with those of model.probes. Throws Error with `path`, the output and the numbers if they
/// differ by more than rounding, or if only one of them is NaN.
void check_probes(const ExportedModel& model, const std::vector<std::vector<float>>& outputs,
                  ProbeTolerance tolerance, const std::string& path);

}  // namespace dtrain
