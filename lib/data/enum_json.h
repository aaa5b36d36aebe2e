// Conversion of enum values to and from JSON. An enum value is written as its name in a configuration.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/json.h"
#include "config/codec.h"

namespace dtrain {

/// Returns the value's name in names_of<E>.
template <class E>
const std::string& enum_text(E value) {
  for (const auto& [known, name] : names_of<E>)
    if (known == value) return name;
  throw std::logic_error("this enum value has no name in names_of");
}

/// Returns the enum value with the name in `json`. Throws UserError if no value has this name.
template <class E>
E enum_from(const Json& json) {
  std::vector<std::string> names;
  for (const auto& [value, name] : names_of<E>) {
    if (name == json.as_string()) return value;
    names.push_back(name);
  }
  throw UserError(fmt::format("expected one of {}, found '{}'", fmt::join(names, ", "), json.as_string()));
}

}  // namespace dtrain
