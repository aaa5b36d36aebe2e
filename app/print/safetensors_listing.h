// What `dtrain inspect` and `dtrain summary` print of a .safetensors file.
#pragma once

#include <string>

#include "base/json.h"
#include "checkpoint/safetensors.h"

namespace dtrain {

/// All arrays with their shapes, and the metadata.
Json arrays_json(const SafetensorsFile& file, const std::string& path);
std::string arrays_text(const SafetensorsFile& file, const std::string& path);

/// The layers that the arrays' names tell of ("layer1.0.conv1" of "layer1.0.conv1.weight"), in order of
/// appearance, each with its arrays and number of parameters.
Json layers_json(const SafetensorsFile& file, const std::string& path);
std::string layers_text(const SafetensorsFile& file, const std::string& path);

}  // namespace dtrain
