#include "program/arena.h"

#include <algorithm>
#include <bit>
#include <map>

namespace dtrain {

namespace {

constexpr size_t kAlignment = 64;

/// A segment tree that stores a height (an offset in memory) for every time. All heights are initially 0.
class Heights {
 public:
  explicit Heights(size_t times) : times_(std::bit_ceil(times)), nodes_(2 * times_) {}

  size_t highest(size_t first, size_t last) { return highest(1, 0, times_, first, last + 1); }
  /// Changes the heights at the times `first` to `last`: each height of at least `low` is raised to at least
  /// `high`.
  void raise(size_t first, size_t last, size_t low, size_t high) {
    raise(1, 0, times_, first, last + 1, low, high);
  }

 private:
  struct Span {
    // `raised`: minimum height that must still be applied to both halves of the span (lazy propagation).
    size_t least = 0, most = 0, raised = 0;
  };

  void lift(size_t node, size_t high) {
    Span& span = nodes_[node];
    span.least = std::max(span.least, high);
    span.most = std::max(span.most, high);
    span.raised = std::max(span.raised, high);
  }

  void pass_down(size_t node) {
    if (nodes_[node].raised == 0) return;
    for (const size_t half : {2 * node, 2 * node + 1}) lift(half, nodes_[node].raised);
    nodes_[node].raised = 0;
  }

  size_t highest(size_t node, size_t from, size_t to, size_t first, size_t end) {
    if (end <= from || to <= first) return 0;
    if (first <= from && to <= end) return nodes_[node].most;
    pass_down(node);
    const size_t middle = from + (to - from) / 2;
    return std::max(highest(2 * node, from, middle, first, end),
                    highest(2 * node + 1, middle, to, first, end));
  }

  void raise(size_t node, size_t from, size_t to, size_t first, size_t end, size_t low, size_t high) {
    if (end <= from || to <= first || nodes_[node].most < low) return;
    if (first <= from && to <= end && nodes_[node].least >= low) return lift(node, high);
    pass_down(node);
    const size_t middle = from + (to - from) / 2;
    raise(2 * node, from, middle, first, end, low, high);
    raise(2 * node + 1, middle, to, first, end, low, high);
    nodes_[node].least = std::min(nodes_[2 * node].least, nodes_[2 * node + 1].least);
    nodes_[node].most = std::max(nodes_[2 * node].most, nodes_[2 * node + 1].most);
  }

  size_t times_;
  std::vector<Span> nodes_;
};

}  // namespace

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

void Arena::assign() {
  std::vector<size_t> order;
  size_t times = 1;
  for (size_t i = 0; i < buffers_.size(); ++i) {
    if (buffers_[i].first < 0 || buffers_[i].bytes == 0) continue;
    order.push_back(i);
    for (const int time : {buffers_[i].first, buffers_[i].last})
      if (time != kToTheEnd) times = std::max(times, static_cast<size_t>(time) + 1);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return buffers_[a].bytes > buffers_[b].bytes; });
  const size_t largest = order.empty() ? 0 : buffers_[order.front()].bytes;
  std::multimap<size_t, const Buffer*> placed;  // placed buffers by offset
  // For each time, `full` is the offset below which there is no gap, and `top` is the offset above which no
  // buffer is placed. In most cases, both offsets are equal, so that no search for a gap is necessary. The
  // cost of a search grows with the number of buffers.
  Heights full(times), top(times);
  for (const size_t index : order) {
    Buffer& buffer = buffers_[index];
    const auto first = static_cast<size_t>(buffer.first),
               last = std::min(static_cast<size_t>(buffer.last), times - 1);
    size_t at = full.highest(first, last);
    if (const size_t end = top.highest(first, last); at < end) {
      for (auto next = placed.lower_bound(at - std::min(at, largest)); next != placed.end(); ++next) {
        const Buffer& other = *next->second;
        if (other.first > buffer.last || other.last < buffer.first) continue;
        if (other.offset >= at + buffer.bytes || at >= end) break;  // the gap before `other` is large enough
        at = std::max(at, other.offset + other.bytes);
      }
    }
    buffer.offset = at;
    total_ = std::max(total_, at + buffer.bytes);
    placed.emplace(at, &buffer);
    full.raise(first, last, at, at + buffer.bytes);
    top.raise(first, last, 0, at + buffer.bytes);
  }
}

}  // namespace dtrain
