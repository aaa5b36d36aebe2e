// Zip archives such as Keras 3's .keras files. Entries may be stored or deflated. Zip64 is supported.
// Source: PKWARE's APPNOTE.TXT, sections 4.3 to 4.5.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/file.h"

namespace dtrain {

struct ZipEntry {
  std::string name;
  uint64_t header = 0;        ///< the offset of the entry's local header in the file
  uint64_t packed_bytes = 0;  ///< compressed size in the file
  uint64_t bytes = 0;         ///< uncompressed size
  uint32_t checksum = 0;      ///< CRC-32 of the unpacked bytes
  bool is_deflated = false;
};

/// An open zip archive. Because archives may be untrusted, an archive is rejected if its entries overlap,
/// share a name, have paths that lead outside the target folder, are encrypted, or unpack to more than three
/// times the size of the file plus 64 MiB.
class ZipFile {
 public:
  /// Reads the directory of the archive. Throws UserError with the path, the expected content and the content
  /// found if the archive is damaged or rejected.
  explicit ZipFile(const std::string& path);

  const std::string& path() const { return path_; }
  uint64_t file_bytes() const { return file_bytes_; }
  const std::vector<ZipEntry>& entries() const { return entries_; }
  /// Returns the entry with this name; null if there is none.
  const ZipEntry* find(std::string_view name) const;
  /// Returns the unpacked bytes of an entry. Throws UserError if they do not match the entry's checksum.
  Bytes read(const ZipEntry& entry) const;

 private:
  struct Directory {
    uint64_t offset = 0, bytes = 0, entries = 0;
  };
  std::string bytes_at(uint64_t offset, uint64_t count, const char* what) const;
  Directory find_directory() const;
  ZipEntry read_entry(class Cursor& cursor) const;
  uint64_t data_offset(const ZipEntry& entry) const;
  void check_entries() const;
  [[noreturn]] void refuse(const std::string& expected, const std::string& found) const;

  std::string path_;
  mutable std::ifstream file_;
  uint64_t file_bytes_ = 0;
  std::vector<ZipEntry> entries_;
};

}  // namespace dtrain
