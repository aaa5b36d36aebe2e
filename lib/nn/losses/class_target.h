// What a target must be where an output is rows of scores, one a class.
#pragma once

#include <optional>

#include "base/tensor_spec.h"
#include "nn/layer.h"

namespace dtrain {

/// Class numbers for rows of scores: int32, the output's shape less its last axis. Complains of a scalar
/// output.
std::optional<TensorSpec> class_numbers_for(const TensorSpec& output, const Complain& complain);
/// Float numbers in the output's shape. Complains of an output that is not float32.
std::optional<TensorSpec> floats_for(const TensorSpec& output, const Complain& complain);

}  // namespace dtrain
