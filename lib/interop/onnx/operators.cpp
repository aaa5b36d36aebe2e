#include "interop/onnx/operators.h"

#include <algorithm>
#include <map>
#include <stdexcept>

#include <fmt/format.h>

namespace dtrain {

const OnnxAttribute* OnnxCall::attribute(std::string_view name) const {
  const auto found = std::find_if(node.attributes.begin(), node.attributes.end(),
                                  [&](const OnnxAttribute& one) { return one.first == name; });
  return found == node.attributes.end() ? nullptr : &*found;
}

int64_t OnnxCall::integer(std::string_view name, int64_t otherwise) const {
  const OnnxAttribute* found = attribute(name);
  return found ? std::get<int64_t>(found->second) : otherwise;
}

float OnnxCall::number(std::string_view name, float otherwise) const {
  const OnnxAttribute* found = attribute(name);
  return found ? std::get<float>(found->second) : otherwise;
}

std::vector<int64_t> OnnxCall::integers(std::string_view name) const {
  const OnnxAttribute* found = attribute(name);
  return found ? std::get<std::vector<int64_t>>(found->second) : std::vector<int64_t>{};
}

std::string OnnxCall::text(std::string_view name, const std::string& otherwise) const {
  const OnnxAttribute* found = attribute(name);
  return found ? std::get<std::string>(found->second) : otherwise;
}

const OnnxOperator& onnx_operator(const std::string& name) {
  static const std::map<std::string, OnnxOperator> operators = [] {
    std::vector<std::pair<std::string, OnnxOperator>> table;
    add_onnx_attention(table);
    add_onnx_elementwise(table);
    add_onnx_products(table);
    add_onnx_recurrent(table);
    add_onnx_windows(table);
    add_onnx_shapes(table);
    add_onnx_resize(table);
    return std::map<std::string, OnnxOperator>(table.begin(), table.end());
  }();
  const auto found = operators.find(name);
  if (found == operators.end())
    throw std::logic_error(fmt::format("the check of ONNX models does not support the operator '{}'", name));
  return found->second;
}

}  // namespace dtrain
