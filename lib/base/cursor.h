// Numbers and pieces of a file's bytes that anybody may have made, with any intention.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace dtrain {

/// Throws the UserError "WHERE: expected ..., found ...".
[[noreturn]] void refuse(std::string_view where, std::string_view expected, std::string_view found);

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

}  // namespace dtrain
