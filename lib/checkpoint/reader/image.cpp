#include "checkpoint/reader/image.h"

#include <bit>

#include <fmt/format.h>

#include "base/error.h"

namespace dtrain {

void refuse(std::string_view where, std::string_view expected, std::string_view found) {
  throw UserError(fmt::format("{}: expected {}, found {}", where, expected, found));
}

Image::Image(std::span<const std::byte> bytes) : bytes_(bytes), allowance_(4 * bytes.size() + 4096) {}

std::span<const std::byte> Image::read(uint64_t address, uint64_t size) {
  if (address > bytes_.size() || size > bytes_.size() - address)
    refuse("HDF5", fmt::format("{} bytes at offset {} of the file's {}", size, address, bytes_.size()),
           "the file's end");
  if (size > allowance_)
    refuse("HDF5", "a file that can be read in one pass", "parts that overlap or go in circles");
  allowance_ -= size;
  return bytes_.subspan(address, size);
}

std::span<const std::byte> Image::read_block(std::string_view signature, uint64_t address, uint64_t size) {
  const std::span<const std::byte> block = read(address, size);
  if (!Cursor(block, signature).text(signature.size()).starts_with(signature))
    refuse("HDF5", fmt::format("the signature {} at offset {}", signature, address), "something else");
  return block.subspan(signature.size());
}

std::span<const std::byte> Cursor::take(uint64_t size) {
  if (size > bytes_.size())
    refuse(fmt::format("HDF5: {}", what_), fmt::format("{} more bytes", size),
           fmt::format("{}", bytes_.size()));
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
    refuse(fmt::format("HDF5: {}", what_), fmt::format("{} {}", name, value), fmt::format("{}", found));
}

size_t bytes_for(uint64_t largest) {
  return static_cast<size_t>(std::bit_width(largest) - 1) / 8 + 1;
}

}  // namespace dtrain
