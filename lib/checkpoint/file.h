// Atomic writing and reading of whole files.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "base/location.h"
#include "checkpoint/hash.h"

namespace dtrain {

/// A block of memory. Copies of this object share the same memory.
struct Bytes {
  std::shared_ptr<std::byte[]> data;
  size_t size = 0;

  std::span<const std::byte> span() const { return {data.get(), size}; }
};

/// Allocates an uninitialized block. For a large block, requests large pages, because the system allocates
/// them much faster.
Bytes allocate_block(size_t size);

/// Writes the parts in order to a temporary file in the same directory, and renames the file to `location`
/// when it is on disk. If writing fails, removes the temporary file and leaves an existing file at `location`
/// unchanged. In this case, throws NoSpace if the disk is full, and otherwise Error.
void write_file(const Location& location, Parts parts);

/// Returns the bytes of a regular file. Throws UserError if it does not exist or cannot be read.
Bytes read_file(const std::string& path);

}  // namespace dtrain
