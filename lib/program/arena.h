// Places for buffers that live at different times in one block of memory.
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

namespace dtrain {

/// The first and the last time that a buffer is used; -1 where it never is.
struct Lifetime {
  int first = -1, last = -1;
};

/// Buffers are numbered from 0; times are instruction numbers. A buffer's bytes are its own from its first
/// touch to its last.
class Arena {
 public:
  /// A time after all others.
  static constexpr int kToTheEnd = std::numeric_limits<int>::max();

  int add(size_t bytes);
  void touch(int buffer, int time);
  /// Gives every touched buffer an offset (aligned to 64 bytes) such that no two that live at one time
  /// overlap: largest first, each at the lowest place that is free.
  void assign();

  size_t bytes() const { return total_; }
  size_t offset(int buffer) const { return buffers_[static_cast<size_t>(buffer)].offset; }

 private:
  struct Buffer {
    size_t bytes = 0, offset = 0;
    int first = -1, last = -1;  // untouched: -1
  };
  std::vector<Buffer> buffers_;
  size_t total_ = 0;
};

}  // namespace dtrain
