#include "interop/onnx/interpreter.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/half.h"
#include "interop/onnx/operators.h"

namespace dtrain {

namespace {

/// Returns, for each value, the index of the last node that reads it.
std::map<std::string, size_t> last_readers(const OnnxModel& model) {
  std::map<std::string, size_t> readers;
  for (size_t i = 0; i < model.nodes.size(); ++i)
    for (const std::string& input : model.nodes[i].inputs) readers[input] = i;
  for (const OnnxValue& output : model.outputs) readers[output.name] = model.nodes.size();
  return readers;
}

void round_to_float16(std::vector<float>& values) {
  for (float& value : values) value = from_float16(to_float16(value));
}

/// Returns true if the result of a node is float16. `half`: the names of the previously computed values that
/// are float16.
bool is_half(const OnnxNode& node, const std::set<std::string>& half) {
  if (node.op == "Cast")
    return std::get<int64_t>(node.attributes[0].second) == static_cast<int64_t>(OnnxType::float16);
  return std::any_of(node.inputs.begin(), node.inputs.end(),
                     [&](const std::string& input) { return half.count(input) != 0; });
}

}  // namespace

std::vector<std::vector<float>> run_onnx(const OnnxModel& model, int64_t samples,
                                         const std::vector<std::vector<float>>& inputs) {
  std::map<std::string, OnnxArray> values;
  for (size_t i = 0; i < inputs.size(); ++i) {
    OnnxArray& array = values[model.inputs[i].name];
    array.shape = model.inputs[i].sample.prepended(samples);
    array.values = inputs[i];
  }
  std::set<std::string> half;
  for (const OnnxTensor& tensor : model.initializers) {
    OnnxArray& array = values[tensor.name];
    array.shape = tensor.shape;
    array.values = tensor.floats;
    array.integers = tensor.integers;
    if (tensor.type != OnnxType::float16) continue;
    half.insert(tensor.name);
    round_to_float16(array.values);
  }
  const std::map<std::string, size_t> readers = last_readers(model);
  for (size_t i = 0; i < model.nodes.size(); ++i) {
    const OnnxNode& node = model.nodes[i];
    OnnxCall call{node, {}};
    for (const std::string& input : node.inputs)
      call.inputs.push_back(input.empty() ? nullptr : &values.at(input));
    OnnxArray result = onnx_operator(node.op)(call);
    if (is_half(node, half)) {
      half.insert(node.outputs[0]);
      round_to_float16(result.values);
    }
    values[node.outputs[0]] = std::move(result);
    for (const std::string& input : node.inputs)
      if (readers.count(input) != 0 && readers.at(input) == i) values.erase(input);
  }
  std::vector<std::vector<float>> outputs;
  for (const OnnxValue& output : model.outputs) outputs.push_back(values.at(output.name).values);
  return outputs;
}

}  // namespace dtrain
