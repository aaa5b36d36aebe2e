// Writes zip archives of stored (uncompressed) entries, as Keras 3 writes .keras files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/files/new_file.h"
#include "base/location.h"
#include "checkpoint/hash.h"

namespace dtrain {

/// Creates a zip archive atomically: either the complete archive appears under its name or none. Entries may
/// have any size (Zip64). All timestamps are the earliest that zip allows, so that the same content always
/// produces the same bytes. The functions throw the same errors as the functions of NewFile.
class ZipWriter {
 public:
  explicit ZipWriter(const Location& location) : file_(location) {}

  /// Adds an entry whose content is the concatenation of all parts.
  void add(const std::string& name, Parts parts);
  void add(const std::string& name, const std::string& text);
  void finish();

 private:
  struct Entry {
    std::string name;
    uint64_t header, bytes;
    uint32_t checksum;
  };
  NewFile file_;
  std::vector<Entry> entries_;
};

}  // namespace dtrain
