// Computes the outputs of an ONNX model by plain loops: the check of a model before its file appears.
#pragma once

#include <vector>

#include "interop/onnx/model.h"

namespace dtrain {

/// The outputs of a model for a batch of samples, by output; `inputs`: by input. Integers are floats, too.
/// After each node the numbers of a float16 model are rounded to it. Knows the operators that
/// lib/interop/layers writes; throws std::logic_error for others.
std::vector<std::vector<float>> run_onnx(const OnnxModel& model, int64_t samples,
                                         const std::vector<std::vector<float>>& inputs);

}  // namespace dtrain
