// Appending to files.
#pragma once

#include <string_view>

#include "base/location.h"

namespace dtrain {

/// Appends bytes to a file, creating it if needed. Does not wait for the disk. Throws Error if the bytes
/// cannot be written; the file then contains none of them.
void append_file(const Location& location, std::string_view bytes);

}  // namespace dtrain
