// ONNX operators that several layers share.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "interop/onnx/builder.h"

namespace dtrain {

/// Returns LayerFormats::onnx for a global pooling with this operator. It reads channels first.
std::function<void(OnnxLayer&)> global_pooling_to_onnx(const std::string& op);

/// Sets the layer's output to its input, resized by a factor along each axis after the channels. If
/// `is_linear`, pixels are interpolated linearly as in Keras; otherwise, pixels are repeated, and the factors
/// must be whole numbers.
void set_onnx_resized(OnnxLayer& layer, const std::vector<float>& factors, bool is_linear);

/// Returns the largest element of each row of `x`, along its last axis, which remains with extent 1.
std::string onnx_row_maxima(OnnxLayer& layer, const std::string& x);

/// Returns the sums of the squares of the rows of `x`, along its last axis, which remains with extent 1.
/// Uses ReduceSum, because ReduceMean and ReduceL2 take their axes in different ways in different opsets.
std::string onnx_sums_of_squares(OnnxLayer& layer, const std::string& x);

/// Returns the rows of `x`, along its last axis, divided by their Euclidean norms, or by `epsilon` if a norm
/// is smaller. No square overflows or underflows in float16.
std::string onnx_unit_rows(OnnxLayer& layer, const std::string& x, float epsilon);

}  // namespace dtrain
