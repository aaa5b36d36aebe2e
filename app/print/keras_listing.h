// Listings of Keras files for `inspect` and `summary`.
#pragma once

#include <string>

#include "base/json.h"
#include "interop/keras/files/listing.h"

namespace dtrain {

/// Returns the file's properties and every array with its shape and type.
Json arrays_json(const KerasContent& file);
std::string arrays_text(const KerasContent& file);

/// Returns the layers with their classes and parameter counts.
Json layers_json(const KerasContent& file);
std::string layers_text(const KerasContent& file);

}  // namespace dtrain
