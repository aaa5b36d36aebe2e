// What metrics share: checks of their targets, and how Keras writes a metric.
#pragma once

#include <string>

#include "base/tensor_spec.h"
#include "nn/layer.h"

namespace dtrain {

/// Whether `target` is class numbers, one for every row of `output`; reports an error else.
bool is_sparse_target(const TensorSpec& output, const TensorSpec& target, const ReportError& report_error);
/// Whether `target` is float numbers in the shape of `output`; reports an error else.
bool is_dense_target(const TensorSpec& output, const TensorSpec& target, const ReportError& report_error);
/// Keras's form of a metric; `config` is what the class has of its own.
Json keras_metric(const std::string& class_name, Json config = Json::object());

}  // namespace dtrain
