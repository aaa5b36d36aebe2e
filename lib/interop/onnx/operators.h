// Implementations of the ONNX operators that exported models use, as plain loops (onnx.ai/onnx/operators).
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "interop/onnx/model.h"

namespace dtrain {

/// A value during the computation of a model.
struct OnnxArray {
  Shape shape;
  std::vector<float> values;
  std::vector<int64_t> integers = {};  ///< values of an int64 initializer; `values` is then empty

  OnnxArray() = default;
  explicit OnnxArray(Shape of) : shape(std::move(of)), values(static_cast<size_t>(shape.elements())) {}
};

/// The arguments of an operator.
struct OnnxCall {
  const OnnxNode& node;
  std::vector<const OnnxArray*> inputs;  ///< null for an omitted input

  const OnnxArray& input(size_t i) const { return *inputs.at(i); }
  bool has_input(size_t i) const { return i < inputs.size() && inputs[i] != nullptr; }
  /// Returns an attribute of the node, or null if the node does not have it.
  const OnnxAttribute* attribute(std::string_view name) const;
  int64_t integer(std::string_view name, int64_t otherwise) const;
  float number(std::string_view name, float otherwise) const;
  std::vector<int64_t> integers(std::string_view name) const;
  std::string text(std::string_view name, const std::string& otherwise) const;
};

using OnnxOperator = std::function<OnnxArray(const OnnxCall& call)>;

/// Returns the implementation of an operator. `name` must be in the table that the functions below fill;
/// otherwise throws std::logic_error.
const OnnxOperator& onnx_operator(const std::string& name);

// Each of these functions adds the operators that are implemented in one file to the table.
void add_onnx_attention(std::vector<std::pair<std::string, OnnxOperator>>& table);
void add_onnx_elementwise(std::vector<std::pair<std::string, OnnxOperator>>& table);
void add_onnx_products(std::vector<std::pair<std::string, OnnxOperator>>& table);
void add_onnx_recurrent(std::vector<std::pair<std::string, OnnxOperator>>& table);
void add_onnx_windows(std::vector<std::pair<std::string, OnnxOperator>>& table);
void add_onnx_shapes(std::vector<std::pair<std::string, OnnxOperator>>& table);
void add_onnx_resize(std::vector<std::pair<std::string, OnnxOperator>>& table);

}  // namespace dtrain
