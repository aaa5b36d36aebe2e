// Paths that people give, looked at: what the system has against one is said in a sentence.
#pragma once

#include <string>

namespace dtrain {

enum class Standing { nothing, file, directory, other };

/// What stands at `path`, behind links. Throws UserError where that cannot be found out (a folder on the way
/// that may not be searched, links in a circle, a name that is too long).
Standing look_at(const std::string& path);

/// Absolute, and without links, "." and ".." as far as it leads to something. Throws UserError likewise.
std::string real_path(const std::string& path);
/// Absolute; throws UserError where the working directory is gone.
std::string absolute_path(const std::string& path);

/// Removes a file that may be there; throws Error where that fails.
void remove_file(const std::string& path);

}  // namespace dtrain
