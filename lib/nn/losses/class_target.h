// What losses share: what a target must be for an output, and how Keras writes a loss.
#pragma once

#include <optional>
#include <string>

#include "base/tensor_spec.h"
#include "nn/layer.h"

namespace dtrain {

/// Keras's form of a loss that is a mean over the whole batch; `config` is what the class has of its own.
Json keras_loss(const std::string& class_name, const std::string& name, Json config = Json::object());

/// Class numbers for rows of scores: int32, the output's shape less its last axis. Complains of a scalar
/// output.
std::optional<TensorSpec> class_numbers_for(const TensorSpec& output, const ReportError& report_error);
/// Float numbers in the output's shape. Complains of an output that is not float32.
std::optional<TensorSpec> floats_for(const TensorSpec& output, const ReportError& report_error);

}  // namespace dtrain
