// Files that appear under their names whole or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/error.h"
#include "base/location.h"

namespace dtrain {

/// Something could not be written for want of space: the disk is full, or the user's share of it is.
class NoSpace : public Error {
 public:
  using Error::Error;
};

/// A file that is written under a temporary name beside the final one, which finish() gives it; a file that
/// was not finished is removed. Used by one thread. Every function throws NoSpace where it fails for want of
/// space.
class NewFile {
 public:
  /// Also removes what killed writers left in the folder. Throws UserError where no file can be made there.
  explicit NewFile(Location location);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  /// The name by which messages call the file.
  const std::string& shown() const { return location_.shown(); }
  /// The temporary name, as it is seen from the location's directory.
  const std::string& temporary() const { return temporary_.path; }
  /// Writes after what was appended so far. Throws Error.
  void append(const void* data, size_t bytes);
  int64_t appended() const { return appended_; }
  /// Writes at an offset from the file's beginning. Throws Error.
  void write(int64_t offset, const void* data, size_t bytes);
  /// Returns once the file is on the disk and has its name. Throws Error, and leaves the file that stood
  /// there before, where that fails; only where the name is given but may not outlive a crash of the machine
  /// (Error, not NoSpace) the file before is gone.
  void finish();

 private:
  [[noreturn]] void fail(const char* doing) const;

  Location location_, temporary_;
  bool finished_ = false;
  int fd_ = -1;  // locked as long as the file is written
  int64_t appended_ = 0;
};

/// Removes the temporary files in the directory of this file whose writers are no more: neither does their
/// process run nor does anybody hold their lock (a process of another container shows by its lock only).
void remove_leftovers(const Location& file);

}  // namespace dtrain
