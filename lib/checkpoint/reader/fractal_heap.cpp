#include "checkpoint/reader/fractal_heap.h"

#include <algorithm>
#include <bit>
#include <utility>

#include <fmt/format.h>

#include "checkpoint/reader/btree.h"

namespace dtrain {

namespace {
constexpr std::string_view kHeap = "an HDF5 heap";
constexpr size_t kHeapHeaderBytes = 146;
// Bytes of an indirect block before the field that contains its offset: signature, version and heap address.
constexpr size_t kIndirectPrefix = 13;
}  // namespace

FractalHeap::FractalHeap(Image& image, uint64_t address) : image_(image) {
  Cursor header(image.read_block("FRHP", address, kHeapHeaderBytes), "a heap's header");
  header.expect(0, "version");
  id_bytes_ = header.number(2);
  if (header.number(2) != 0) refuse(kHeap, "objects without filters", "objects with filters");
  header.skip(1);  // flags: whether blocks have checksums, and whether the identifiers wrapped around
  const uint64_t most_managed = header.number(4);
  header.skip(8);  // identifier of the next huge object
  huge_tree_ = header.address();
  header.skip(10 * 8);  // free space and object statistics
  width_ = header.number(2);
  start_ = header.number(8);
  most_direct_ = header.number(8);
  const uint64_t offset_bits = header.number(2);
  header.skip(2);  // initial number of rows
  root_ = header.address();
  rows_ = header.number(2);
  constexpr uint64_t kMostBytes = uint64_t{1} << 32;
  const auto is_size = [](uint64_t bytes) { return std::has_single_bit(bytes) && bytes <= kMostBytes; };
  if (offset_bits == 0 || offset_bits > 64 || most_managed == 0)
    refuse(
        kHeap, "heap offsets of 1 to 64 bits and a maximum object size of at least 1 byte",
        fmt::format("offsets of {} bits and a maximum object size of {} bytes", offset_bits, most_managed));
  if (!std::has_single_bit(width_) || !is_size(start_) || !is_size(most_direct_))
    refuse(kHeap,
           "powers of 2 as the number of blocks per row and as the block sizes, and blocks of at most 4 GiB",
           fmt::format("{} blocks per row with sizes from {} to {} bytes", width_, start_, most_direct_));
  offset_bytes_ = (offset_bits + 7) / 8;
  length_bytes_ = std::min(bytes_for(most_direct_), bytes_for(most_managed));
}

std::span<const std::byte> FractalHeap::object(std::span<const std::byte> id) {
  Cursor cursor(id, "the identifier of an object in a heap");
  const unsigned kind = cursor.byte() & 0xF0u;  // the byte also contains the version, which is 0
  if (kind == 0x00) {
    const uint64_t offset = cursor.number(offset_bytes_);
    return managed(offset, cursor.number(length_bytes_));
  }
  if (kind == 0x10) return huge(cursor.number(std::min<size_t>(cursor.left(), 8)));
  refuse(kHeap, "the identifier of a managed or huge object", "the identifier of another type of object");
}

std::span<const std::byte> FractalHeap::managed(uint64_t offset, uint64_t size) {
  uint64_t block = root_, bytes = start_, rows = rows_;
  while (rows > 0) {
    const uint64_t row = row_of(offset);
    if (row >= rows)
      refuse(kHeap, fmt::format("an object within the heap's {} rows", rows),
             fmt::format("an object in row {} (counted from 0)", row));
    bytes = block_bytes(row);
    offset -= start_of(row);
    const uint64_t entry = row * width_ + offset / bytes;
    offset %= bytes;
    if (block > image_.size())
      refuse(kHeap, "a block within the file", fmt::format("a block at offset {}", block));
    block = Cursor(image_.read(block + kIndirectPrefix + offset_bytes_ + 8 * entry, 8), "a heap's block")
                .address();
    // The size of an indirect block determines its number of rows.
    rows = bytes <= most_direct_ ? 0 : row_of(bytes);
  }
  if (offset > bytes || size > bytes - offset || block > image_.size())
    refuse(kHeap, fmt::format("an object that ends within its block of {} bytes", bytes),
           fmt::format("an object of {} bytes at offset {} of the block", size, offset));
  return image_.read(block + offset, size);
}

uint64_t FractalHeap::row_of(uint64_t offset) const {
  return static_cast<uint64_t>(std::bit_width(offset / (width_ * start_)));
}

std::span<const std::byte> FractalHeap::huge(uint64_t id) {
  if (huge_.empty() && huge_tree_ != kNoAddress)
    for (const auto record : read_records(image_, huge_tree_, RecordKind::huge_objects)) {
      Cursor cursor(record, "the location of a huge object");
      const uint64_t address = cursor.address(), size = cursor.number(8);
      huge_[cursor.number(8)] = {address, size};
    }
  const auto found = huge_.find(id);
  if (found == huge_.end()) refuse(kHeap, fmt::format("a huge object with the identifier {}", id), "none");
  return image_.read(found->second.address, found->second.size);
}

}  // namespace dtrain
