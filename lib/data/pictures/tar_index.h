// Lists the contents of a tar archive with their offsets, so that its files can be read in any order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/files/input_file.h"

namespace dtrain {

struct TarMember {
  std::string name;
  int64_t header = 0;             // offset of its header in the archive
  int64_t offset = 0, bytes = 0;  // offset and size of the file's content
  bool is_file = true;            // false for a link
};

/// Lists the files and links of an archive (POSIX ustar and pax, GNU, and older formats) in order, without
/// reading their content. Throws UserError, with the byte offset of the problem, for an incomplete or damaged
/// archive, and for a compressed one.
std::vector<TarMember> list_tar(const InputFile& file);

/// Returns true if a file that begins with `start` (512 bytes) is a tar archive.
bool is_tar_file(const std::string& start);

}  // namespace dtrain
