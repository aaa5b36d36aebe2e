// Patterns that match names.
#pragma once

#include <string_view>

namespace dtrain {

/// Returns true if the whole name matches the pattern. `*` matches any characters, including '/', or none;
/// all other characters match themselves.
bool matches(std::string_view pattern, std::string_view name);

/// Returns the part of the name that `*` matched, for a pattern with one `*`. The name must match.
std::string_view matched_by_star(std::string_view pattern, std::string_view name);

}  // namespace dtrain
