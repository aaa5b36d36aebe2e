// The versions of dtrain, its libraries and its compiler, for --version.
#pragma once

#include <string>

namespace dtrain {

/// "dtrain 0.1.0", then a line for each library and the compiler; without the last line's end.
std::string version_text();

}  // namespace dtrain
