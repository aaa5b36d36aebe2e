// Selects the valid steps of masked sequences in ONNX graphs.
#pragma once

#include <cstdint>
#include <string>

#include "interop/onnx/builder.h"

namespace dtrain {

/// Matrices [batch, steps, steps] of 0 and 1 that select steps. A masked step does not change the state of a
/// recurrence. Therefore the recurrence is computed over the valid steps only, and its states are then
/// assigned to all steps.
struct OnnxSteps {
  // Row i selects the i-th valid step in the order of processing. The row is 0 if there are at most i valid
  // steps.
  std::string valid;
  // Row t selects the row of `valid` for the last valid step at or before step t in the order of processing.
  // The row is 0 if there is no such step.
  std::string latest;
};

/// Adds the two matrices for the mask of the layer's input. `steps`: number of steps of the input.
/// `backwards`: whether the recurrence begins with the last step. Throws UserError if the export uses float16
/// and the input has too many steps to count them in float16.
OnnxSteps add_onnx_steps(OnnxLayer& layer, const std::string& mask, int64_t steps, bool backwards);

}  // namespace dtrain
