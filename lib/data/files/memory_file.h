// Files without a name on disk: what a pipe gives, or what was made from another file.
#pragma once

#include <string>
#include <string_view>

namespace dtrain {

/// A file in memory, which readers open by its path as long as this lives.
class MemoryFile {
 public:
  /// Holds everything that is read from a descriptor, to its end. Throws Error where that fails.
  static MemoryFile read_from(int descriptor);
  /// Holds the text.
  explicit MemoryFile(std::string_view text);
  ~MemoryFile();
  MemoryFile(MemoryFile&& other) noexcept;
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const;

 private:
  MemoryFile();
  void append(const char* data, size_t bytes) const;

  int fd_ = -1;
};

}  // namespace dtrain
