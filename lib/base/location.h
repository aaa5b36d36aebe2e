// Where a file is: a path, and the directory that it is seen from.
#pragma once

#include <cstddef>
#include <fcntl.h>
#include <string>
#include <utility>
#include <vector>

namespace dtrain {

/// A path as it is seen from a directory that somebody holds open, so that renaming that directory does not
/// matter. A plain path is seen from the working directory.
struct Location {
  Location(std::string plain) : path(std::move(plain)) {}
  Location(const char* plain) : path(plain) {}
  Location(int from, std::string below, std::string in_messages)
      : directory(from), path(std::move(below)), name(std::move(in_messages)) {}

  /// The name by which messages call the file.
  const std::string& shown() const { return name.empty() ? path : name; }

  int directory = AT_FDCWD;
  std::string path;
  std::string name;  // "" where the path itself will do
};

/// The location of `name` in the directory of a file; of the directory itself for ".".
Location beside(const Location& file, const std::string& name);

/// The first bytes of a regular file: fewer than `count` where it is shorter, none where it cannot be read.
std::string first_bytes(const Location& file, size_t count);

/// The names in a directory ("." and ".." among them), in no order; none where it cannot be read.
std::vector<std::string> names_in(const Location& directory);

}  // namespace dtrain
