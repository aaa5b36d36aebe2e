// Writing zip archives of stored entries, as Keras 3 writes .keras files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/files/new_file.h"
#include "base/location.h"
#include "checkpoint/hash.h"

namespace dtrain {

/// An archive that appears under its name whole or not at all. Entries may have any size (Zip64). All times
/// are zip's first, so that the same content gives the same bytes. Functions throw as NewFile's do.
class ZipWriter {
 public:
  explicit ZipWriter(const Location& location) : file_(location) {}

  /// Adds an entry of the bytes of all parts, one after the other.
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
