// What `inspect` and `summary` print of an .h5 that Keras wrote.
#pragma once

#include <string>

#include "base/json.h"
#include "interop/keras/listing.h"

namespace dtrain {

/// The file, then every array with its shape and type.
Json arrays_json(const KerasContent& file);
std::string arrays_text(const KerasContent& file);

/// The layers with their classes and parameters.
Json layers_json(const KerasContent& file);
std::string layers_text(const KerasContent& file);

}  // namespace dtrain
