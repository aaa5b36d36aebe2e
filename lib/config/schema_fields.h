// Functions that add fields to JSON schemas. They are used for fields that are not in the options' own
// Schema, such as the keys that all layers have in common.
#pragma once

#include <functional>

#include "base/json.h"

namespace dtrain {

/// A function that returns the new "properties" of a mapping's schema, given the old ones.
using ChangeFields = std::function<Json(const Json& properties)>;

/// Applies `change` to the fields of a schema. If the schema has alternatives ("anyOf", "oneOf"), applies it
/// to each alternative that is a mapping.
Json with_fields(const Json& schema, const ChangeFields& change);

/// Applies `change` to the option fields of every type in a registry's choices_schema().
Json with_option_fields(const Json& kinds, const ChangeFields& change);

}  // namespace dtrain
