// Paths that people give: what the system has against a path is said in a sentence.
#pragma once

#include <string>

namespace dtrain {

enum class Standing { nothing, file, directory, other };

/// What is at `path`, symbolic links followed. Throws UserError where that cannot be found out (a folder on
/// the way that may not be searched, links in a circle, a name that is too long).
Standing look_at(const std::string& path);

/// Whether an empty file is at `path`, symbolic links followed.
bool is_empty_file(const std::string& path);

/// The path made absolute, and without links, "." and ".." as far as it leads to something. Throws UserError
/// as look_at does.
std::string real_path(const std::string& path);
/// The path without "." and "..", where it leads to the same place then; behind a symbolic link ".." may lead
/// elsewhere, and the path stays as it is.
std::string without_dots(const std::string& path);
/// The path made absolute. Throws UserError where the working directory is gone.
std::string absolute_path(const std::string& path);

}  // namespace dtrain
