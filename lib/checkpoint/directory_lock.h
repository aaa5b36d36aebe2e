// A lock between readers of a directory's newest checkpoint and those who remove checkpoints.
#pragma once

#include <string>

namespace dtrain {

/// A lock on a directory while this lives, taken without waiting. Readers share the lock from before they
/// list the checkpoints until one is read; whoever removes checkpoints holds it alone. Where the file system
/// knows no locks, or there is no such directory, nothing is locked and nobody is refused.
class DirectoryLock {
 public:
  enum class Kind { shared, alone };
  DirectoryLock(const std::string& directory, Kind kind);
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;
  ~DirectoryLock();

  /// Another process has a lock that does not go together with this one.
  bool refused() const { return refused_; }

 private:
  int fd_;
  bool refused_ = false;
};

}  // namespace dtrain
