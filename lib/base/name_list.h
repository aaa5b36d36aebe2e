// Names in a sentence.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace dtrain {

/// "'a', 'b', 'c' and 7 more", where `most` is 3.
std::string list_some(const std::vector<std::string>& names, size_t most = 3);

}  // namespace dtrain
