// The comparison of an exported model's answers with dtrain's.
#pragma once

#include <string>
#include <vector>

#include "interop/exported_model.h"

namespace dtrain {

enum class ProbeTolerance { float32, float16 };

/// The largest difference from a probe's output that is still rounding, as a part of the largest number of
/// that output, or of 1 where that is larger.
constexpr float tolerance_of(ProbeTolerance tolerance) {
  return tolerance == ProbeTolerance::float16 ? 0.05f : 1e-4f;
}

/// Compares outputs with those of model.probes. Throws Error, naming `path`, the output and the numbers,
/// where they differ by more than rounding, or one is no number where the other is.
void check_probes(const ExportedModel& model, const std::vector<std::vector<float>>& outputs,
                  ProbeTolerance tolerance, const std::string& path);

}  // namespace dtrain
