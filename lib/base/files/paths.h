// Paths given by users, with readable errors.
#pragma once

#include <string>
#include <sys/types.h>

namespace dtrain {

enum class FileType { nothing, file, directory, other };

/// Returns the type of the file at `path`, following symbolic links. Throws UserError if it cannot be
/// determined (a folder without search permission, a cycle of links, a name that is too long).
FileType file_type(const std::string& path);

/// Names the type of a file with this mode for messages: "a file", "a directory", "a pipe", "a socket", "a
/// device".
const char* name_of_type(mode_t mode);
/// Names the type of the file at `path`, following symbolic links; "nothing" if it cannot be accessed.
const char* name_of_type(const std::string& path);

/// Returns true if `path` leads to an empty file. Follows symbolic links.
bool is_empty_file(const std::string& path);

/// Returns the absolute path without symbolic links, "." and "..". Only the part of the path that exists is
/// resolved. Throws UserError in the same cases as file_type().
std::string real_path(const std::string& path);
/// Removes "." and ".." from the path. Returns the path unchanged if the result would lead to a different
/// place, which is possible if ".." follows a symbolic link.
std::string without_dots(const std::string& path);
/// Returns the absolute path. Throws UserError if the working directory no longer exists.
std::string absolute_path(const std::string& path);

}  // namespace dtrain
