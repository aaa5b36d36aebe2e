// A text file whose content is in memory.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "data/files/mapped_file.h"

namespace dtrain {

/// The whole content of a file, decompressed if it is gzip. Large uncompressed files are mapped, and all
/// other files are read into memory. Any thread may read it.
class TextFile {
 public:
  /// Throws UserError if the file cannot be opened or decompressed.
  explicit TextFile(const std::string& path);

  const std::string& path() const { return path_; }
  /// Returns the content without a UTF-8 byte order mark.
  std::string_view text() const;
  bool is_mapped() const { return mapped_ != nullptr; }
  /// Throws Error if a mapped file has changed.
  void check() const;

 private:
  std::string path_;
  std::unique_ptr<const MappedFile> mapped_;
  std::string read_;
};

/// Throws UserError with the path and the offset of the first byte that is not UTF-8, if there is one.
void check_utf8(std::string_view text, const std::string& path);

}  // namespace dtrain
