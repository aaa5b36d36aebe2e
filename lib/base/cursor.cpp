#include "base/cursor.h"

#include <fmt/format.h>

#include "base/error.h"

namespace dtrain {

void refuse(std::string_view where, std::string_view expected, std::string_view found) {
  throw UserError(fmt::format("{}: expected {}, found {}", where, expected, found));
}

std::span<const std::byte> Cursor::take(uint64_t size) {
  if (size > bytes_.size())
    refuse(what_, fmt::format("{} more bytes", size), fmt::format("{}", bytes_.size()));
  const auto taken = bytes_.first(size);
  bytes_ = bytes_.subspan(size);
  return taken;
}

uint64_t Cursor::number(size_t bytes) {
  uint64_t value = 0;
  const auto taken = take(bytes);
  for (size_t i = 0; i < bytes; ++i) value |= std::to_integer<uint64_t>(taken[i]) << (8 * i);
  return value;
}

std::string_view Cursor::text(uint64_t size) {
  const auto taken = take(size);
  return {reinterpret_cast<const char*>(taken.data()), taken.size()};
}

void Cursor::expect(uint8_t value, std::string_view name) {
  if (const uint8_t found = byte(); found != value)
    refuse(what_, fmt::format("{} {}", name, value), fmt::format("{}", found));
}

}  // namespace dtrain
