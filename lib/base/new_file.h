// Files that appear under their names whole or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace dtrain {

/// Written under a temporary name beside the final one, which finish() gives it; what was not finished is
/// removed. Used by one thread.
class NewFile {
 public:
  /// Also removes what killed writers left in the folder. Throws UserError where no file can be made there.
  explicit NewFile(const std::string& path);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  const std::string& path() const { return path_; }
  const std::string& temporary() const { return temporary_; }
  /// Behind what was appended so far. Throws Error.
  void append(const void* data, size_t bytes);
  int64_t appended() const { return appended_; }
  /// Throws Error.
  void write(int64_t offset, const void* data, size_t bytes);
  /// The file is on the disk, and has its name. Throws Error, and leaves what stood there.
  void finish();

 private:
  std::string path_, temporary_;
  int fd_ = -1;  // locked as long as the file is written
  int64_t appended_ = 0;
};

/// Removes the temporary files in the folder of `path` whose writers are no more: neither does their process
/// run nor does anybody hold their lock (a process of another container shows by its lock only).
void remove_leftovers(const std::string& path);

}  // namespace dtrain
