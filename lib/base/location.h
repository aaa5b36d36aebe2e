// The location of a file: a path relative to an open directory.
#pragma once

#include <cstddef>
#include <fcntl.h>
#include <string>
#include <utility>
#include <vector>

namespace dtrain {

/// A path relative to an open directory, so that it stays valid if that directory is renamed. A plain path is
/// relative to the working directory.
struct Location {
  Location(std::string plain) : path(std::move(plain)) {}
  Location(const char* plain) : path(plain) {}
  Location(int from, std::string below, std::string in_messages)
      : directory(from), path(std::move(below)), name(std::move(in_messages)) {}

  /// Returns the name used in messages.
  const std::string& shown() const { return name.empty() ? path : name; }

  int directory = AT_FDCWD;
  std::string path;
  std::string name;  // "" to use the path
};

/// Returns the location of `name` in the directory that contains `file`; "." gives the directory itself.
Location beside(const Location& file, const std::string& name);

/// Returns the first `count` bytes of a regular file; fewer if it is shorter, none if it cannot be read.
std::string first_bytes(const Location& file, size_t count);

/// Returns the names in a directory in no particular order, including "." and "..". Returns an empty list if
/// the directory cannot be read.
std::vector<std::string> names_in(const Location& directory);

}  // namespace dtrain
