// Helpers for losses: the shapes and dtypes of the targets that they require.
#pragma once

#include <optional>
#include <string>

#include "base/tensor_spec.h"
#include "nn/layer.h"

namespace dtrain {

/// Returns the spec of a target that consists of class numbers: int32, with the shape of the output without
/// its last axis. If the output is a scalar or not float32, reports an error and returns nullopt.
std::optional<TensorSpec> class_numbers_for(const TensorSpec& output, const ReportError& report_error);
/// Returns the spec of a target of floats with the shape of the output. If the output is not float32, reports
/// an error and returns nullopt.
std::optional<TensorSpec> floats_for(const TensorSpec& output, const ReportError& report_error);

}  // namespace dtrain
