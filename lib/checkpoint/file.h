// Whole files: written so that they appear at once, read into memory.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "base/location.h"
#include "checkpoint/hash.h"

namespace dtrain {

/// A block of memory.
struct Bytes {
  std::shared_ptr<std::byte[]> data;
  size_t size = 0;

  std::span<const std::byte> span() const { return {data.get(), size}; }
};

/// A block that nothing is written to yet. The system is asked for large pages for a large one, which it
/// then has in a part of the time.
Bytes allocate_bytes(size_t size);

/// Writes the parts one after the other to a temporary file in the same directory, and gives that its final
/// name once it is on the disk. Throws Error, and leaves neither a temporary file nor a changed `path`, when
/// that fails; NoSpace where it is for want of space.
void write_file(const Location& location, Parts parts);

/// The bytes of a regular file; throws UserError where there is none or it cannot be read.
Bytes read_file(const std::string& path);

}  // namespace dtrain
