// Listings of .safetensors files for `inspect` and `summary`.
#pragma once

#include <string>

#include "base/json.h"
#include "checkpoint/safetensors.h"

namespace dtrain {

/// Returns all arrays with their shapes, and the metadata.
Json arrays_json(const SafetensorsFile& file, const std::string& path);
std::string arrays_text(const SafetensorsFile& file, const std::string& path);

/// Returns the layers that follow from the arrays' names ("layer1.0.conv1" from "layer1.0.conv1.weight"), in
/// order of appearance, with their arrays and numbers of parameters.
Json layers_json(const SafetensorsFile& file, const std::string& path);
std::string layers_text(const SafetensorsFile& file, const std::string& path);

}  // namespace dtrain
