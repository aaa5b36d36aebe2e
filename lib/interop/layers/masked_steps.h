// Selection of the valid steps of masked sequences in ONNX graphs.
#pragma once

#include <cstdint>
#include <string>

#include "interop/onnx/builder.h"

namespace dtrain {

/// Matrices of 0 and 1 that select steps, [batch, steps, steps]. A masked step keeps the state, so a
/// recurrence over the valid steps alone has the same states.
struct OnnxSteps {
  // Row i selects the i-th valid step in the order of processing. It is 0 if there are fewer valid steps.
  std::string valid;
  // Row t selects the row of `valid` for the last valid step up to step t. It is 0 if no such step is valid.
  std::string latest;
};

/// Adds the matrices for the mask of the layer's input, which has `steps` steps. `backwards`: the recurrence
/// begins with the last step. Throws UserError if float16 cannot count the steps.
OnnxSteps add_onnx_steps(OnnxLayer& layer, const std::string& mask, int64_t steps, bool backwards);

}  // namespace dtrain
