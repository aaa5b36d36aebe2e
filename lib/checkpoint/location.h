// Where a file is: a path, and the directory that it is seen from.
#pragma once

#include <fcntl.h>
#include <string>
#include <utility>

namespace dtrain {

/// A path as it is seen from a directory that somebody holds open, so that renaming that directory does not
/// matter. A plain path is seen from the working directory.
struct Location {
  Location(std::string plain) : path(std::move(plain)) {}
  Location(const char* plain) : path(plain) {}
  Location(int from, std::string below, std::string in_messages)
      : directory(from), path(std::move(below)), name(std::move(in_messages)) {}

  /// What people are told.
  const std::string& shown() const { return name.empty() ? path : name; }

  int directory = AT_FDCWD;
  std::string path;
  std::string name;  // "" where the path itself will do
};

}  // namespace dtrain
