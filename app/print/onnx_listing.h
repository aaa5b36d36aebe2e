// What `inspect` and `summary` print of an ONNX file.
#pragma once

#include <string>

#include "base/json.h"
#include "interop/onnx/read_model.h"

namespace dtrain {

/// The file, then every initializer with its shape and type.
Json arrays_json(const OnnxFile& file, const std::string& path);
std::string arrays_text(const OnnxFile& file, const std::string& path);

/// The file, then every operator.
Json operators_json(const OnnxFile& file, const std::string& path);
std::string operators_text(const OnnxFile& file, const std::string& path);

}  // namespace dtrain
