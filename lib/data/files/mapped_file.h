// Maps a file into memory, for what is read again and again.
#pragma once

#include <atomic>
#include <cstddef>
#include <string>

#include "data/files/input_file.h"

namespace dtrain {

struct MappedRegion;

/// Any thread may read the memory. Where the file cannot give its content any more (it was cut short, the
/// disk fails), the process would end with SIGBUS; instead such a part reads as zeros, and check() throws. So
/// whoever reads the memory calls check() before using what was read.
class MappedFile {
 public:
  /// Throws Error where the file cannot be mapped.
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const InputFile& file() const { return file_; }
  const std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  /// Throws Error where the file was changed since it was opened, or a part could not be read.
  void check() const;

 private:
  InputFile file_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  MappedRegion* region_ = nullptr;
};

}  // namespace dtrain
