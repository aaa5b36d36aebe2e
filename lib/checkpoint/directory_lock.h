// A lock between processes that read a directory's newest checkpoint and processes that remove checkpoints.
#pragma once

#include <string>

namespace dtrain {

/// A lock on a directory for the lifetime of the object, acquired without waiting. Readers hold a shared lock
/// from before they list the checkpoints until they have read one; a process that removes checkpoints holds
/// it exclusively. If the file system does not support locks, or the directory does not exist, nothing is
/// locked and refused() is false.
class DirectoryLock {
 public:
  enum class Kind { shared, alone };
  DirectoryLock(const std::string& directory, Kind kind);
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;
  ~DirectoryLock();

  /// Returns whether another process held a conflicting lock, so that this lock was not acquired.
  bool refused() const { return rejected_; }

 private:
  int fd_;
  bool rejected_ = false;
};

}  // namespace dtrain
