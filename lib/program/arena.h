// Assigns offsets in one block of memory to buffers with different lifetimes.
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

namespace dtrain {

/// The first and last time at which a buffer is used; -1 if it is never used.
struct Lifetime {
  int first = -1, last = -1;
};

/// Plans the memory of buffers. Buffers are numbered from 0, and times are instruction indices. A buffer is
/// live from its first touch to its last touch. During this time, no other buffer overlaps it.
class Arena {
 public:
  /// A time after all instructions.
  static constexpr int kToTheEnd = std::numeric_limits<int>::max();

  int add(size_t bytes);
  void touch(int buffer, int time);
  /// Assigns an offset, aligned to 64 bytes, to every touched buffer. Buffers that are live at the same time
  /// do not overlap. Buffers are placed in the order of decreasing size, each at the lowest free offset.
  void assign();

  size_t bytes() const { return total_; }
  size_t offset(int buffer) const { return buffers_[static_cast<size_t>(buffer)].offset; }

 private:
  struct Buffer {
    size_t bytes = 0, offset = 0;
    int first = -1, last = -1;  // -1: never touched
  };
  std::vector<Buffer> buffers_;
  size_t total_ = 0;
};

}  // namespace dtrain
