// An ONNX model in memory, as far as exported models need it (onnx.ai/onnx/repo-docs/IR.html).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/shape.h"

namespace dtrain {

/// TensorProto.DataType.
enum class OnnxType : int32_t { float32 = 1, uint8 = 2, int32 = 6, int64 = 7, float16 = 10 };

/// An initializer: `floats` of a floating type, `integers` of the others.
struct OnnxTensor {
  std::string name;
  OnnxType type = OnnxType::float32;
  Shape shape;
  std::vector<float> floats;
  std::vector<int64_t> integers;
};

using OnnxAttribute = std::pair<std::string, std::variant<int64_t, float, std::string, std::vector<int64_t>>>;

struct OnnxNode {
  std::string op, name;
  std::vector<std::string> inputs, outputs;  ///< an input "" is left out
  std::vector<OnnxAttribute> attributes;
};

/// An input or output of the graph; its first axis is the batch, whose size is open.
struct OnnxValue {
  std::string name;
  OnnxType type = OnnxType::float32;
  Shape sample;
};

struct OnnxModel {
  int64_t opset = 17;
  std::string name;
  std::vector<OnnxNode> nodes;
  std::vector<OnnxTensor> initializers;
  std::vector<OnnxValue> inputs, outputs;
  std::vector<std::pair<std::string, std::string>> metadata;
};

/// The version of the file format that came with a version of the operators.
int64_t onnx_ir_version(int64_t opset);

/// The bytes of an initializer as files hold them.
std::string onnx_raw_data(const OnnxTensor& tensor);

/// A large initializer's place in a file beside the model.
struct OnnxExternal {
  std::string file;  ///< relative to the model's folder
  int64_t offset = 0, bytes = 0;
};

/// The model as a file. `external`: by initializer; one without a `file` is in the model itself. Empty: all
/// are.
std::string onnx_bytes(const OnnxModel& model, const std::vector<OnnxExternal>& external = {});

}  // namespace dtrain
