// The operators of ONNX that exported models have, as plain loops (onnx.ai/onnx/operators).
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "interop/onnx/model.h"

namespace dtrain {

/// A value while a model is computed.
struct OnnxArray {
  Shape shape;
  std::vector<float> values;
  std::vector<int64_t> integers = {};  ///< of an int64 initializer, which has no `values`

  OnnxArray() = default;
  explicit OnnxArray(Shape of) : shape(std::move(of)), values(static_cast<size_t>(shape.elements())) {}
};

/// One call of an operator.
struct OnnxCall {
  const OnnxNode& node;
  std::vector<const OnnxArray*> inputs;  ///< null for one that is left out

  const OnnxArray& input(size_t i) const { return *inputs.at(i); }
  bool has_input(size_t i) const { return i < inputs.size() && inputs[i] != nullptr; }
  /// Null for an attribute that the node does not have.
  const OnnxAttribute* attribute(std::string_view name) const;
  int64_t integer(std::string_view name, int64_t otherwise) const;
  float number(std::string_view name, float otherwise) const;
  std::vector<int64_t> integers(std::string_view name) const;
  std::string text(std::string_view name, const std::string& otherwise) const;
};

using OnnxOperator = std::function<OnnxArray(const OnnxCall& call)>;

/// Throws std::logic_error for an operator without a loop here.
const OnnxOperator& onnx_operator(const std::string& name);

// The families of operators; each adds its own.
void add_onnx_elementwise(std::vector<std::pair<std::string, OnnxOperator>>& table);
void add_onnx_products(std::vector<std::pair<std::string, OnnxOperator>>& table);
void add_onnx_windows(std::vector<std::pair<std::string, OnnxOperator>>& table);
void add_onnx_shapes(std::vector<std::pair<std::string, OnnxOperator>>& table);
void add_onnx_resize(std::vector<std::pair<std::string, OnnxOperator>>& table);

}  // namespace dtrain
