// Names in a sentence.
#pragma once

#include <string>
#include <vector>

namespace dtrain {

/// "'a', 'b', 'c' and 7 more"
std::string list_some(const std::vector<std::string>& names);

}  // namespace dtrain
