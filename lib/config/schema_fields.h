// Fields that are added to JSON schemas of options beside those of the options' own Schema.
#pragma once

#include <functional>

#include "base/json.h"

namespace dtrain {

/// Given the "properties" of a mapping, returns those that it shall have.
using ChangeFields = std::function<Json(const Json& properties)>;

/// The schema with the fields of every mapping among its alternatives ("anyOf", "oneOf") changed.
Json with_fields(const Json& schema, const ChangeFields& change);

/// The same for the options of every kind of a registry's choices_schema().
Json with_option_fields(const Json& kinds, const ChangeFields& change);

}  // namespace dtrain
