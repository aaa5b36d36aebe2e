#include "checkpoint/reader/image.h"

#include <bit>

#include <fmt/format.h>

namespace dtrain {

Image::Image(std::span<const std::byte> bytes) : bytes_(bytes), allowance_(4 * bytes.size() + 4096) {}

std::span<const std::byte> Image::read(uint64_t address, uint64_t size) {
  if (address > bytes_.size() || size > bytes_.size() - address)
    refuse("HDF5", fmt::format("{} bytes at offset {} in a file of {} bytes", size, address, bytes_.size()),
           "the file's end");
  if (size > allowance_)
    refuse("HDF5", "a file that can be read in one pass", "parts that overlap or are read in a loop");
  allowance_ -= size;
  return bytes_.subspan(address, size);
}

std::span<const std::byte> Image::read_block(std::string_view signature, uint64_t address, uint64_t size) {
  const std::span<const std::byte> block = read(address, size);
  if (!Cursor(block, signature).text(signature.size()).starts_with(signature))
    refuse("HDF5", fmt::format("the signature {} at offset {}", signature, address), "something else");
  return block.subspan(signature.size());
}

size_t bytes_for(uint64_t largest) {
  return static_cast<size_t>(std::bit_width(largest) - 1) / 8 + 1;
}

}  // namespace dtrain
