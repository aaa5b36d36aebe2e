// A simple interpreter for ONNX models. It is used to check an exported model before its file is created.
#pragma once

#include <vector>

#include "interop/onnx/model.h"

namespace dtrain {

/// Computes the outputs of a model for a batch of samples. `inputs` and the result have one array for each
/// input and output of the model, in the model's order; integers are passed as floats. The results of a
/// float16 model are rounded to float16 after each node. Supports the operators that lib/interop/layers
/// writes; throws std::logic_error for others.
std::vector<std::vector<float>> run_onnx(const OnnxModel& model, int64_t samples,
                                         const std::vector<std::vector<float>>& inputs);

}  // namespace dtrain
