// What losses share: what a target must be for an output, and how Keras writes a loss.
#pragma once

#include <optional>
#include <string>

#include "base/tensor_spec.h"
#include "nn/layer.h"

namespace dtrain {

/// Keras's form of a loss that is a mean over the whole batch; `config` is what the class has of its own.
Json keras_loss(const std::string& class_name, const std::string& name, Json config = Json::object());

/// The target of class numbers for rows of scores: int32, in the output's shape less its last axis; nothing,
/// after reporting an error, for an output that is a scalar or not float32.
std::optional<TensorSpec> class_numbers_for(const TensorSpec& output, const ReportError& report_error);
/// The target of float numbers in the output's shape; nothing for an output that is not float32, after
/// reporting an error.
std::optional<TensorSpec> floats_for(const TensorSpec& output, const ReportError& report_error);

}  // namespace dtrain
