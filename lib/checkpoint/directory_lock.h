// A lock that prevents a process from removing checkpoints while another process reads the newest checkpoint.
#pragma once

#include <string>

namespace dtrain {

/// Tries to lock a directory for the lifetime of the object, without waiting. A process that reads a
/// checkpoint holds a shared lock from the moment before it lists the checkpoints until it has read one of
/// them. A process that removes checkpoints holds an exclusive lock. If the file system does not support
/// locks, or if the directory does not exist, nothing is locked and refused() is false.
class DirectoryLock {
 public:
  enum class Kind { shared, alone };
  DirectoryLock(const std::string& directory, Kind kind);
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;
  ~DirectoryLock();

  /// Returns true if the lock was not acquired because another process holds a conflicting lock.
  bool refused() const { return rejected_; }

 private:
  int fd_;
  bool rejected_ = false;
};

}  // namespace dtrain
