#include "nn/arena.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace dtrain {

namespace {
constexpr size_t kAlignment = 64;
}

int Arena::add(size_t bytes) {
  Buffer buffer;
  buffer.bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  buffers_.push_back(buffer);
  return static_cast<int>(buffers_.size()) - 1;
}

void Arena::touch(int buffer, int time) {
  Buffer& b = buffers_[static_cast<size_t>(buffer)];
  b.first = b.first < 0 ? time : std::min(b.first, time);
  b.last = std::max(b.last, time);
}

void Arena::keep(int buffer) {
  touch(buffer, 0);
  touch(buffer, std::numeric_limits<int>::max());
}

void Arena::assign() {
  std::vector<size_t> order(buffers_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return buffers_[a].bytes > buffers_[b].bytes; });
  std::vector<const Buffer*> placed;  // by offset
  for (const size_t index : order) {
    Buffer& buffer = buffers_[index];
    if (buffer.first < 0 || buffer.bytes == 0) continue;
    size_t at = 0;
    for (const Buffer* other : placed) {
      if (other->first > buffer.last || other->last < buffer.first) continue;
      if (other->offset >= at + buffer.bytes) break;  // the gap before it is large enough
      at = std::max(at, other->offset + other->bytes);
    }
    buffer.offset = at;
    total_ = std::max(total_, at + buffer.bytes);
    const auto place = std::upper_bound(placed.begin(), placed.end(), at,
                                        [](size_t offset, const Buffer* b) { return offset < b->offset; });
    placed.insert(place, &buffer);
  }
}

}  // namespace dtrain
