// Reads HDF5's fractal heaps, which hold the links and attributes of objects that have many links or
// attributes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>

#include "checkpoint/reader/image.h"

namespace dtrain {

/// A fractal heap of a file ("Fractal Heap" in the HDF5 file format specification). It consists of rows of
/// `width` blocks each. The blocks of the first two rows have the starting size. In each further row, the
/// blocks are twice as large as in the row before. Small blocks (direct blocks) contain objects. Larger
/// blocks (indirect blocks) consist of rows of blocks themselves.
class FractalHeap {
 public:
  /// Throws UserError if there is no heap at `address`, or if the heap has features that dtrain never writes.
  FractalHeap(Image& image, uint64_t address);

  /// Returns the size of an object's identifier in bytes.
  size_t id_bytes() const { return id_bytes_; }
  /// Returns the object with this identifier. Throws UserError if the heap does not contain it.
  std::span<const std::byte> object(std::span<const std::byte> id);

 private:
  /// Returns an object that is stored in the heap's blocks.
  std::span<const std::byte> managed(uint64_t offset, uint64_t size);
  /// Returns an object that is stored outside the heap's blocks. A B-tree maps its identifier to its place in
  /// the file.
  std::span<const std::byte> huge(uint64_t id);
  /// Returns the row that contains an offset in the heap.
  uint64_t row_of(uint64_t offset) const;
  /// Returns the offset in the heap at which a row starts.
  uint64_t start_of(uint64_t row) const { return row == 0 ? 0 : (width_ * start_) << (row - 1); }
  /// Returns the size of each block of a row.
  uint64_t block_bytes(uint64_t row) const { return row == 0 ? start_ : start_ << (row - 1); }

  Image& image_;
  size_t id_bytes_ = 0, offset_bytes_ = 0, length_bytes_ = 0;
  uint64_t width_ = 0, start_ = 0, most_direct_ = 0;
  uint64_t root_ = kNoAddress, rows_ = 0;  // if rows_ is 0, the root is a direct block
  uint64_t huge_tree_ = kNoAddress;
  struct Place {
    uint64_t address, size;
  };
  std::unordered_map<uint64_t, Place> huge_;  // loaded when the first huge object is requested
};

}  // namespace dtrain
