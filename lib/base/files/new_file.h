// Files that are written under a temporary name and then renamed atomically.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/location.h"

namespace dtrain {

/// Thrown if a write fails because the disk is full or the user's quota is exhausted.
class NoSpace : public Error {
 public:
  using Error::Error;
};

/// Tells the constructor of NewFile whether to remove leftover temporary files (see remove_leftovers()). Each
/// call of remove_leftovers() lists the folder, so a caller that writes many files into one folder should
/// call it once and pass `kept`.
enum class Leftovers { removed, kept };

/// Writes a file under a temporary name next to the final one. finish() renames it; an unfinished file is
/// removed. Not thread-safe. Every function throws NoSpace if it fails for lack of space.
class NewFile {
 public:
  /// Throws UserError if the file cannot be created.
  explicit NewFile(Location location, Leftovers leftovers = Leftovers::removed);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  /// Returns the file's name for messages.
  const std::string& shown() const { return location_.shown(); }
  /// Returns the temporary path, relative to the location's directory.
  const std::string& temporary() const { return temporary_.path; }
  /// Appends bytes to the file. Throws Error on failure.
  void append(const void* data, size_t bytes);
  int64_t appended() const { return appended_; }
  /// Writes bytes at an offset from the start of the file. Throws Error on failure.
  void write(int64_t offset, const void* data, size_t bytes);
  /// Returns once the file is on the disk under its final name. On failure throws Error and keeps the old
  /// file, with one exception: if the rename succeeded but may not survive a crash of the machine, it throws
  /// Error (not NoSpace) and the old file is gone.
  void finish();

 private:
  [[noreturn]] void fail(const char* doing) const;

  Location location_, temporary_;
  bool finished_ = false;
  int fd_ = -1;  // locked while the file is being written
  int64_t appended_ = 0;
};

/// Writes a whole file with a NewFile. Throws the same exceptions as NewFile.
void write_new_file(Location location, std::string_view content);

/// Removes temporary files of NewFile from the directory of `file` if their writers have ended: the writer's
/// process no longer runs, and its lock is free. (A process in another container is visible only by its
/// lock.) Files whose names NewFile would not choose are kept, because another program may have written them.
void remove_leftovers(const Location& file);

}  // namespace dtrain
