// Files that exist only in memory. They hold data that comes from a pipe or was converted from another file.
#pragma once

#include <string>
#include <string_view>

namespace dtrain {

/// A file in memory. Readers can open its path while this object lives.
class MemoryFile {
 public:
  /// Makes a file from all data of a descriptor. Throws Error if the data cannot be read or stored.
  static MemoryFile read_from(int descriptor);
  /// Makes a file that holds `text`.
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
