// Files that grow at their end.
#pragma once

#include <string_view>

#include "base/location.h"

namespace dtrain {

/// Adds bytes to the end of a file, which is made where it is not there, without waiting for the disk. Throws
/// Error where they cannot be written; then the file has none of them.
void append_file(const Location& location, std::string_view bytes);

}  // namespace dtrain
