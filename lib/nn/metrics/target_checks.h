// Helpers for metrics: target checks.
#pragma once

#include <string>

#include "base/tensor_spec.h"
#include "nn/layer.h"

namespace dtrain {

/// Returns whether `target` contains one class number for every row of `output`. Reports an error otherwise.
bool is_sparse_target(const TensorSpec& output, const TensorSpec& target, const ReportError& report_error);
/// Returns whether `target` contains floats and has the shape of `output`. Reports an error otherwise.
bool is_dense_target(const TensorSpec& output, const TensorSpec& target, const ReportError& report_error);

}  // namespace dtrain
