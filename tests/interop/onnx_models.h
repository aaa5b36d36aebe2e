// Creates and runs exported ONNX models.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "exported.h"
#include "interop/onnx/export.h"
#include "interop/onnx/interpreter.h"

namespace dtrain::test {

/// Returns the number of nodes of this operator.
inline int64_t count(const OnnxModel& model, const std::string& op) {
  return std::count_if(model.nodes.begin(), model.nodes.end(),
                       [&](const OnnxNode& node) { return node.op == op; });
}

/// Returns the operators of all nodes in order.
inline std::string ops(const OnnxModel& model) {
  std::string all;
  for (const OnnxNode& node : model.nodes) all += (all.empty() ? "" : " ") + node.op;
  return all;
}

/// Returns a model with random weights.
inline OnnxModel onnx_of(const std::string& yaml) {
  const TestExport exported(yaml);
  return onnx_model(exported.model, {});
}

/// Returns the output of a one-layer model for one sample.
inline std::vector<float> answer(const std::string& layer, const std::string& input,
                                 std::vector<float> values) {
  const TestExport exported("inputs: {x: " + input + "}\nlayers: [" + layer + "]\n");
  return run_onnx(onnx_model(exported.model, {}), 1, {std::move(values)})[0];
}

}  // namespace dtrain::test
