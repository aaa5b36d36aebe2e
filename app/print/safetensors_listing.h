// Listings of .safetensors files for `inspect` and `summary`.
#pragma once

#include <string>

#include "base/json.h"
#include "checkpoint/safetensors.h"

namespace dtrain {

/// Returns all arrays with their shapes, and the metadata.
Json arrays_json(const SafetensorsFile& file, const std::string& path);
std::string arrays_text(const SafetensorsFile& file, const std::string& path);

/// Returns the layers, with their arrays and numbers of parameters, in the order of their first array. The
/// name of a layer is derived from the names of its arrays ("layer1.0.conv1" from "layer1.0.conv1.weight").
Json layers_json(const SafetensorsFile& file, const std::string& path);
std::string layers_text(const SafetensorsFile& file, const std::string& path);

}  // namespace dtrain
