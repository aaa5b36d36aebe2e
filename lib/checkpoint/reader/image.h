// An HDF5 file in memory that anybody may have made, with any intention.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/cursor.h"

namespace dtrain {

/// Where HDF5 has an address that leads nowhere.
inline constexpr uint64_t kNoAddress = ~uint64_t{0};

/// The file's bytes, none of which is reached but through `read`.
class Image {
 public:
  explicit Image(std::span<const std::byte> bytes);

  size_t size() const { return bytes_.size(); }
  /// Throws UserError unless all of it lies in the file. An honest file's bytes are read about once; what is
  /// read is counted, and a file that makes its reader go in circles, or to the same place again and again,
  /// is refused once that comes to several times its size. So reading takes time and memory that are
  /// proportional to the file, and no structure in it needs to look out for loops.
  std::span<const std::byte> read(uint64_t address, uint64_t size);
  /// As read(); throws UserError unless it begins with the four characters of `signature`, which are left
  /// out.
  std::span<const std::byte> read_block(std::string_view signature, uint64_t address, uint64_t size);

 private:
  std::span<const std::byte> bytes_;
  uint64_t allowance_;
};

/// The bytes that libhdf5 gives a number which is at most `largest` (1 or more).
size_t bytes_for(uint64_t largest);

}  // namespace dtrain
