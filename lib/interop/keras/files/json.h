// Access to JSON that Keras wrote, in which keys may be missing.
#pragma once

#include <string>

#include "base/json.h"

namespace dtrain {

/// Returns the string under a key; "" if `object` is not an object, or the key is missing or not a string.
std::string text_at(const Json& object, const char* key);
/// Returns the value under a key; nullptr if `object` is not an object, or the key is missing or null.
const Json* value_at(const Json& object, const char* key);
/// Returns whether `object` is an object that has the value true under a key.
bool is_true_at(const Json& object, const char* key);

}  // namespace dtrain
