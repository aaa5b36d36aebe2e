// Lists of names in messages.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace dtrain {

/// Formats a list such as "'a', 'b', 'c' and 7 more", with at most `most` names. If there is only one name
/// more than `most`, the list contains it, too.
std::string list_some(const std::vector<std::string>& names, size_t most = 3);

}  // namespace dtrain
