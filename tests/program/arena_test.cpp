// Tests the placement of buffers: live buffers do not overlap, each buffer is at the lowest free offset, and
// assign() is fast.
#include "program/arena.h"

#include <algorithm>
#include <ctime>
#include <random>

#include <doctest/doctest.h>

#include "support/speed.h"

using namespace dtrain;

namespace {

struct LiveBuffer {
  size_t bytes;
  int first, last;
};

/// Computes the result of assign() with a simple algorithm.
std::vector<size_t> lowest_places(const std::vector<LiveBuffer>& buffers) {
  std::vector<size_t> order(buffers.size()), offsets(buffers.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return buffers[a].bytes > buffers[b].bytes; });
  std::vector<size_t> placed;
  for (const size_t i : order) {
    std::vector<size_t> beside;
    for (const size_t other : placed)
      if (buffers[other].first <= buffers[i].last && buffers[other].last >= buffers[i].first)
        beside.push_back(other);
    std::sort(beside.begin(), beside.end(), [&](size_t a, size_t b) { return offsets[a] < offsets[b]; });
    size_t at = 0;
    for (const size_t other : beside) {
      if (offsets[other] >= at + buffers[i].bytes) break;
      at = std::max(at, offsets[other] + buffers[other].bytes);
    }
    offsets[i] = at;
    placed.push_back(i);
  }
  return offsets;
}

}  // namespace

TEST_CASE("a buffer is placed at the lowest offset that is free during its lifetime") {
  std::mt19937 random(7);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int round = 0; round < 300; ++round) {
    const int times = 1 + below(40), count = 1 + below(60), sizes = 1 + below(6);
    std::vector<LiveBuffer> buffers;
    Arena arena;
    for (int i = 0; i < count; ++i) {
      const int first = below(times), last = first + below(times - first);
      buffers.push_back({64 * static_cast<size_t>(1 + below(sizes)), first, last});
      const int buffer = arena.add(buffers.back().bytes);
      arena.touch(buffer, first);
      arena.touch(buffer, last);
      if (below(20) > 0) continue;
      arena.touch(buffer, 0);
      arena.touch(buffer, Arena::kToTheEnd);
      buffers.back() = {buffers.back().bytes, 0, times};
    }
    arena.assign();
    const std::vector<size_t> expected = lowest_places(buffers);
    size_t end = 0;
    for (int i = 0; i < count; ++i) {
      CHECK(arena.offset(i) == expected[static_cast<size_t>(i)]);
      end = std::max(end, arena.offset(i) + buffers[static_cast<size_t>(i)].bytes);
    }
    CHECK(arena.bytes() == end);
  }
}

TEST_CASE("a hundred thousand buffers are placed quickly") {
  // The limit is far above the actual time, so that it holds under sanitizers, and far below the time of an
  // algorithm that compares every pair.
  const std::clock_t start = std::clock();  // CPU time, because other programs may run at the same time
  constexpr int kLayers = 60'000;
  Arena arena;
  for (int i = 0; i < kLayers; ++i) {
    const int output = arena.add(i % 3 == 0 ? 128 : 64), gradient = arena.add(i % 3 == 0 ? 128 : 64);
    arena.touch(output, i);
    arena.touch(output, 2 * kLayers - i);
    arena.touch(gradient, 2 * kLayers - i);
    arena.touch(gradient, 2 * kLayers - i + 1);
  }
  arena.assign();
  CHECK(arena.bytes() > kLayers * size_t{64});
  CHECK(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC < 20 * test::kSlowness);
}
