// Lists the files of a tar archive with their offsets. With the offsets, the files can be read in any order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/files/input_file.h"

namespace dtrain {

struct TarMember {
  std::string name;
  int64_t header = 0;             // offset of the file's header in the archive
  int64_t offset = 0, bytes = 0;  // offset and size of the file's content
  bool is_file = true;            // false for a link
};

/// Lists the files and links of an archive in order, without reading the content of the files. Supports the
/// formats POSIX ustar and pax, GNU tar, and older formats. Throws UserError if the archive is incomplete,
/// damaged or compressed; if it is incomplete or damaged, the message contains the byte offset of the
/// problem.
std::vector<TarMember> list_tar(const InputFile& file);

/// Returns true if a file that begins with `start` (512 bytes) is a tar archive.
bool is_tar_file(const std::string& start);

}  // namespace dtrain
