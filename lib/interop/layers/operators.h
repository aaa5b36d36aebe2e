// Operators of ONNX that layers of images and of sequences share. They read and write channels first.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "interop/onnx/builder.h"

namespace dtrain {

/// The row `onnx` of a global pooling by this operator.
std::function<void(OnnxLayer&)> global_pooling_to_onnx(const std::string& op);

/// The layer's output is its input, enlarged by a factor along each axis behind the channels: pixels are
/// repeated, or interpolated linearly as Keras does.
void set_onnx_resized(OnnxLayer& layer, const std::vector<int64_t>& factors, bool is_linear);

}  // namespace dtrain
