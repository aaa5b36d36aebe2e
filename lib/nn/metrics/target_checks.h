// Helpers of metrics: checks of targets.
#pragma once

#include <string>

#include "base/tensor_spec.h"
#include "nn/layer.h"

namespace dtrain {

/// Returns whether `target` holds class numbers, one for every row of `output`; reports an error otherwise.
bool is_sparse_target(const TensorSpec& output, const TensorSpec& target, const ReportError& report_error);
/// Returns whether `target` holds floats in the shape of `output`; reports an error otherwise.
bool is_dense_target(const TensorSpec& output, const TensorSpec& target, const ReportError& report_error);

}  // namespace dtrain
