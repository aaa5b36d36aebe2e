// ONNX files as `inspect`, `summary` and `diff` read them (onnx.ai/onnx/repo-docs/IR.html).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/shape.h"

namespace dtrain {

/// An initializer of a file.
struct OnnxInitializer {
  std::string name;
  std::string type;  ///< "float32", "int64", ...; "type 99" for an unknown one
  Shape shape;
  /// float32, float16, bfloat16 and float64 as float32; nothing for other types.
  std::optional<std::vector<float>> values;
};

/// An operator of a file.
struct OnnxFileNode {
  std::string name, op, domain;  ///< domain: "" for ONNX's own operators
  std::vector<std::string> inputs, outputs;
};

/// An input or output of the graph.
struct OnnxEnd {
  std::string name, type;
  std::vector<std::string> extents;  ///< "batch" or "?" for an open one
};

struct OnnxFile {
  int64_t ir_version = 0, opset = 0;
  std::string producer, graph;
  std::vector<OnnxFileNode> operators;
  std::vector<OnnxInitializer> initializers;
  std::vector<OnnxEnd> inputs, outputs;
  std::vector<std::pair<std::string, std::string>> metadata;
};

/// Whether a file is named as ONNX files are.
bool is_onnx_file(const std::string& path);

/// Reads a file, with external data from files in the same folder. Throws UserError, with the path, what was
/// expected and what was found, for a file that is damaged, is no ONNX, or names external data elsewhere.
OnnxFile read_onnx(const std::string& path);

}  // namespace dtrain
