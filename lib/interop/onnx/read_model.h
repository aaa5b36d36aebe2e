// Reads ONNX files for `inspect`, `summary`, `diff` and pretrained weights (onnx.ai/onnx/repo-docs/IR.html).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/shape.h"

namespace dtrain {

/// An initializer (a stored tensor) of an ONNX file.
struct OnnxInitializer {
  std::string name;
  /// name of the type, such as "float32"; "type 99" for an unknown type with the number 99
  std::string type;
  Shape shape;
  /// The values as float32, if the type is float32, float16, bfloat16 or float64; nullopt for other types.
  std::optional<std::vector<float>> values;
  std::string other = {};  ///< the type and the bytes of the values, if `values` is not set
};

/// A node (an operator) of an ONNX file.
struct OnnxFileNode {
  std::string name, op, domain;  ///< domain: "" for ONNX's own operators
  std::vector<std::string> inputs, outputs;
};

/// An input or output of the graph of an ONNX file.
struct OnnxEnd {
  std::string name, type;
  std::vector<std::string> extents;  ///< sizes of the axes; for a dynamic axis, its name ("batch") or "?"
};

struct OnnxFile {
  int64_t ir_version = 0, opset = 0;
  std::string producer, graph;
  std::vector<OnnxFileNode> operators;
  std::vector<OnnxInitializer> initializers;
  std::vector<OnnxEnd> inputs, outputs;
  std::vector<std::pair<std::string, std::string>> metadata;
};

/// Returns true if a file name has the extension of ONNX files.
bool is_onnx_file(const std::string& path);

/// Reads an ONNX file. Also reads its external data, which must be in files in the same folder. Throws
/// UserError with the path, the expected content and the content found if the file is damaged, is not an ONNX
/// file or refers to external data in another folder.
OnnxFile read_onnx(const std::string& path);

}  // namespace dtrain
