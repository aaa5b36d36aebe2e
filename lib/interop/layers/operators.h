// ONNX operators that several kinds of layers use.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "interop/onnx/builder.h"

namespace dtrain {

/// Returns a conversion to ONNX (LayerFormats::onnx) for a global pooling layer. `op`: the ONNX operator,
/// which reads images with channels first.
std::function<void(OnnxLayer&)> global_pooling_to_onnx(const std::string& op);

/// Sets the layer's output to its resized input. `factors`: the factor for each axis after the channels. If
/// `is_linear` is true, pixels are interpolated linearly as in Keras. Otherwise, pixels are repeated, and the
/// factors must be integers.
void set_onnx_resized(OnnxLayer& layer, const std::vector<float>& factors, bool is_linear);

/// Returns the maximum of each row of `x`. The rows lie along the last axis, which has extent 1 in the
/// result.
std::string onnx_row_maxima(OnnxLayer& layer, const std::string& x);

/// Returns the sum of squares of each row of `x`. The rows lie along the last axis, which has extent 1 in the
/// result. Uses ReduceSum, because ReduceMean and ReduceL2 take their axes as an attribute in some opsets and
/// as an input in others.
std::string onnx_sums_of_squares(OnnxLayer& layer, const std::string& x);

/// Divides each row of `x` by its Euclidean norm, or by `epsilon` if the norm is smaller. The rows lie along
/// the last axis. In float16, the computed squares neither overflow nor underflow.
std::string onnx_unit_rows(OnnxLayer& layer, const std::string& x, float epsilon);

}  // namespace dtrain
