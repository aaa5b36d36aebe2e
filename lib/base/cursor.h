// Parsing numbers and slices from untrusted bytes of a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace dtrain {

/// Throws the UserError "WHERE: expected ..., found ...".
[[noreturn]] void refuse(std::string_view where, std::string_view expected, std::string_view found);

/// Takes numbers and slices off the front of a byte range. Throws UserError if the range is too short.
class Cursor {
 public:
  /// `what` names the parsed structure in messages; it must outlive the cursor.
  Cursor(std::span<const std::byte> bytes, std::string_view what) : bytes_(bytes), what_(what) {}

  /// Returns the number of bytes that have not been taken.
  size_t left() const { return bytes_.size(); }
  /// Returns the next `size` bytes, without copying them.
  std::span<const std::byte> take(uint64_t size);
  void skip(uint64_t size) { take(size); }
  /// Reads a little-endian number of 1 to 8 bytes.
  uint64_t number(size_t bytes);
  uint8_t byte() { return static_cast<uint8_t>(number(1)); }
  /// Reads a file address, a little-endian number of 8 bytes.
  uint64_t address() { return number(8); }
  /// Returns the next `size` bytes as text, without copying them.
  std::string_view text(uint64_t size);
  /// Reads a byte, and throws UserError unless it equals `value`. For a field that may have only one value,
  /// e.g. a format version. `name` names the field in the message.
  void expect(uint8_t value, std::string_view name);

 private:
  std::span<const std::byte> bytes_;
  std::string_view what_;
};

}  // namespace dtrain
