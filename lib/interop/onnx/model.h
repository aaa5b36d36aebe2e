// An ONNX model in memory: the subset that exported models need (onnx.ai/onnx/repo-docs/IR.html).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/shape.h"

namespace dtrain {

/// Element types, with the numbers of ONNX's TensorProto.DataType.
enum class OnnxType : int32_t { float32 = 1, uint8 = 2, int32 = 6, int64 = 7, float16 = 10 };

/// An initializer. The values are in `floats` if the type is a floating-point type, else in `integers`.
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
  std::vector<std::string> inputs, outputs;  ///< an empty input name means that the input is omitted
  std::vector<OnnxAttribute> attributes;
};

/// An input or output of the graph. Its first axis is the batch, whose size is dynamic.
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

/// Returns the version of the ONNX file format for an operator set version.
int64_t onnx_ir_version(int64_t opset);

/// Returns the bytes of an initializer as they are stored in a file.
std::string onnx_raw_data(const OnnxTensor& tensor);

/// The location of a large initializer in an external data file.
struct OnnxExternal {
  std::string file;  ///< path relative to the model's folder
  int64_t offset = 0, bytes = 0;
};

/// Returns the bytes of the model's file. `external` has one element per initializer; an initializer whose
/// `file` is empty is stored in the model itself. If `external` is empty, all initializers are stored in the
/// model.
std::string onnx_bytes(const OnnxModel& model, const std::vector<OnnxExternal>& external = {});

}  // namespace dtrain
