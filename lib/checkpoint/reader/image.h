// An untrusted HDF5 file in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/cursor.h"

namespace dtrain {

/// HDF5's undefined address.
inline constexpr uint64_t kNoAddress = ~uint64_t{0};

/// The bytes of the file. They can only be accessed through bounds-checked reads.
class Image {
 public:
  explicit Image(std::span<const std::byte> bytes);

  size_t size() const { return bytes_.size(); }
  /// Returns `size` bytes at `address`. Throws UserError if they are not all within the file. Also throws
  /// UserError if the total number of bytes read exceeds several times the size of the file. A normal file is
  /// read about once, but a damaged file may make its reader loop or read the same place again and again.
  /// Therefore, the time and memory for reading are proportional to the size of the file, and readers need
  /// not detect loops.
  std::span<const std::byte> read(uint64_t address, uint64_t size);
  /// Like read(), but for a block that begins with `signature`. Returns the bytes after the signature. Throws
  /// UserError if the signature is missing.
  std::span<const std::byte> read_block(std::string_view signature, uint64_t address, uint64_t size);

 private:
  std::span<const std::byte> bytes_;
  uint64_t allowance_;
};

/// Returns the number of bytes in which libhdf5 stores a number that is at most `largest`. `largest` must be
/// at least 1.
size_t bytes_for(uint64_t largest);

}  // namespace dtrain
