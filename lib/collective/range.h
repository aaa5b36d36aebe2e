// Contiguous parts of flat buffers.
#pragma once

#include <algorithm>
#include <cstdint>

namespace dtrain {

/// A contiguous part of a flat buffer: [begin, end).
struct Range {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
};

/// Returns the intersection of two ranges; an empty range if they are disjoint.
inline Range overlap(Range a, Range b) {
  const int64_t begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

/// Divides [0, n) into `parts` contiguous pieces and returns piece `index`. The length of a piece is a
/// multiple of `grain`; only the last piece may end with a part of a grain. The numbers of grains in two
/// pieces differ by at most one.
Range part_of(int64_t n, int index, int parts, int64_t grain = 1);

}  // namespace dtrain
