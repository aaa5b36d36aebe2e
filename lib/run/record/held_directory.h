// A directory that a process locks while it writes files there.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace dtrain {

/// Creates a directory and its missing parent directories. Appends the created directories to `made`,
/// outermost first. Throws UserError if a directory cannot be created.
void make_directories(const std::filesystem::path& path, std::vector<std::string>& made);

/// A directory that is open and locked after open() was called. The directory may be renamed while it is
/// open.
struct HeldDirectory {
  explicit HeldDirectory(std::string given);
  HeldDirectory(const HeldDirectory&) = delete;
  HeldDirectory& operator=(const HeldDirectory&) = delete;
  ~HeldDirectory() { close(); }

  /// Creates, opens and locks the directory `path`. Returns false if another process holds the lock. Throws
  /// UserError if the directory cannot be created or opened.
  bool open();
  void close();
  /// Returns `path`, or the current path if the open directory was renamed.
  std::string current_path() const;
  /// Returns whether this object or another process holds the lock.
  bool is_held() const;
  /// Returns whether the open directory was removed.
  bool is_gone() const;

  std::string path;
  // Absolute form of `path`. It is computed in the constructor, because later the working directory may have
  // been removed.
  std::filesystem::path absolute;
  int fd = -1;                    // -1 until the directory is open
  std::vector<std::string> made;  // directories that open() created
};

}  // namespace dtrain
