// Listings of ONNX files for `inspect` and `summary`.
#pragma once

#include <string>

#include "base/json.h"
#include "interop/onnx/read_model.h"

namespace dtrain {

/// Returns the file's properties and every initializer with its shape and type.
Json arrays_json(const OnnxFile& file, const std::string& path);
std::string arrays_text(const OnnxFile& file, const std::string& path);

/// Returns the file's properties and every operator.
Json operators_json(const OnnxFile& file, const std::string& path);
std::string operators_text(const OnnxFile& file, const std::string& path);

}  // namespace dtrain
