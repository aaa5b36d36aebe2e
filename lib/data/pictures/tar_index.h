// What a tar archive holds, and where, so that its files can be read in any order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/files/input_file.h"

namespace dtrain {

struct TarMember {
  std::string name;
  int64_t header = 0;             // where its header begins in the archive
  int64_t offset = 0, bytes = 0;  // its content
  bool is_file = true;            // else a link
};

/// The files and links of an archive (POSIX ustar and pax, GNU, and older ones), in order; of the contents
/// nothing is read. Throws UserError, with the byte at which it was met, for what is no whole archive, and
/// for one that is packed.
std::vector<TarMember> list_tar(const InputFile& file);

/// Whether a file that begins so (512 bytes) is a tar archive.
bool is_tar_file(const std::string& start);

}  // namespace dtrain
