// Helpers of losses: requirements on targets.
#pragma once

#include <optional>
#include <string>

#include "base/tensor_spec.h"
#include "nn/layer.h"

namespace dtrain {

/// Returns the target spec of class numbers for rows of scores: int32, the output's shape without its last
/// axis. Reports an error and returns nullopt if the output is a scalar or not float32.
std::optional<TensorSpec> class_numbers_for(const TensorSpec& output, const ReportError& report_error);
/// Returns the target spec of floats in the output's shape. Reports an error and returns nullopt if the
/// output is not float32.
std::optional<TensorSpec> floats_for(const TensorSpec& output, const ReportError& report_error);

}  // namespace dtrain
