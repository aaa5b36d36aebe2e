// Reading JSON that Keras wrote, in which keys may be missing.
#pragma once

#include <string>

#include "base/json.h"

namespace dtrain {

/// Returns the text under a key; "" if `object` is no object, or the key is missing or no text.
std::string text_at(const Json& object, const char* key);
/// Returns the value under a key; null (the pointer) if `object` is no object, or the key is missing or null.
const Json* value_at(const Json& object, const char* key);

}  // namespace dtrain
