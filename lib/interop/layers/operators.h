// ONNX operators that layers of images and of sequences share. They read and write channels first.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "interop/onnx/builder.h"

namespace dtrain {

/// Returns LayerFormats::onnx for a global pooling with this operator.
std::function<void(OnnxLayer&)> global_pooling_to_onnx(const std::string& op);

/// Sets the layer's output to its input, enlarged by a factor along each axis after the channels. Pixels are
/// repeated, or interpolated linearly as in Keras.
void set_onnx_resized(OnnxLayer& layer, const std::vector<int64_t>& factors, bool is_linear);

}  // namespace dtrain
