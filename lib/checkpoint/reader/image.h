// An HDF5 file in memory that anybody may have made, with any intention.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace dtrain {

/// Throws the UserError "WHERE: expected ..., found ...".
[[noreturn]] void refuse(std::string_view where, std::string_view expected, std::string_view found);

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

/// Takes numbers and pieces off the front of bytes. Throws UserError where they end too soon.
class Cursor {
 public:
  /// `what`: of what these are the bytes, for messages; it has to outlive this.
  Cursor(std::span<const std::byte> bytes, std::string_view what) : bytes_(bytes), what_(what) {}

  size_t left() const { return bytes_.size(); }
  std::span<const std::byte> take(uint64_t size);
  void skip(uint64_t size) { take(size); }
  /// Little endian, of 1 to 8 bytes.
  uint64_t number(size_t bytes);
  uint8_t byte() { return static_cast<uint8_t>(number(1)); }
  uint64_t address() { return number(8); }
  std::string_view text(uint64_t size);
  /// A byte that has to be `value`: a version, or a count of which dtrain writes only one.
  void expect(uint8_t value, std::string_view name);

 private:
  std::span<const std::byte> bytes_;
  std::string_view what_;
};

/// The bytes that libhdf5 gives a number which is at most `largest` (1 or more).
size_t bytes_for(uint64_t largest);

}  // namespace dtrain
