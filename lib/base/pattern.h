// Patterns over names.
#pragma once

#include <string_view>

namespace dtrain {

/// Whether a name is as the pattern says: `*` stands for any characters, '/' among them, or none; all others
/// for themselves.
bool matches(std::string_view pattern, std::string_view name);

/// What `*` stands for in a pattern that has one; the name must match.
std::string_view matched_by_star(std::string_view pattern, std::string_view name);

}  // namespace dtrain
