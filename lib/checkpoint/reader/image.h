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

/// The bytes of the file, accessible only through bounds-checked reads.
class Image {
 public:
  explicit Image(std::span<const std::byte> bytes);

  size_t size() const { return bytes_.size(); }
  /// Returns `size` bytes at `address`. Throws UserError unless all of them lie in the file. Bytes read are
  /// counted: a normal file is read about once, and a file that makes its reader loop or return to the same
  /// place again and again is rejected once the count reaches several times its size. Reading therefore takes
  /// time and memory proportional to the file, and readers need no loop detection.
  std::span<const std::byte> read(uint64_t address, uint64_t size);
  /// Like read(), but throws UserError unless the block starts with `signature`, which is not returned.
  std::span<const std::byte> read_block(std::string_view signature, uint64_t address, uint64_t size);

 private:
  std::span<const std::byte> bytes_;
  uint64_t allowance_;
};

/// Returns how many bytes libhdf5 uses for a number that is at most `largest` (1 or more).
size_t bytes_for(uint64_t largest);

}  // namespace dtrain
