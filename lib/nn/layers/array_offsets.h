// Offsets of the arrays that a layer stores in its saved or scratch memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dtrain {

/// Divides a block of memory into arrays. The start of each array is aligned, so that the array can have
/// elements of any type.
class ArrayOffsets {
 public:
  /// Adds an array to the block and returns its offset.
  size_t add(size_t bytes) {
    constexpr size_t kAlignment = 256;
    const size_t offset = bytes_;
    bytes_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return offset;
  }
  size_t add(int64_t n, size_t element_bytes) { return add(static_cast<size_t>(n) * element_bytes); }
  /// Returns the size of the block.
  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_ = 0;
};

/// Returns the array at this offset in a block.
inline void* array_at(void* memory, size_t offset) {
  return static_cast<std::byte*>(memory) + offset;
}

}  // namespace dtrain
