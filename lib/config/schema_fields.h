// Adds fields to the JSON schemas of options, in addition to those of the options' own Schema.
#pragma once

#include <functional>

#include "base/json.h"

namespace dtrain {

/// Returns the new "properties" of a mapping, given the old ones.
using ChangeFields = std::function<Json(const Json& properties)>;

/// Returns the schema with the fields of every mapping among its alternatives ("anyOf", "oneOf") changed.
Json with_fields(const Json& schema, const ChangeFields& change);

/// Changes the fields of the options of every type in a registry's choices_schema() in the same way.
Json with_option_fields(const Json& kinds, const ChangeFields& change);

}  // namespace dtrain
