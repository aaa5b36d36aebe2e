// How replicas meet. One object a replica, used by its thread; every member must make the same calls in the
// same order.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/error.h"

namespace dtrain {

/// Thrown by the calls of a group's other members once one of them has called abort: never the error to show.
class Aborted : public Error {
 public:
  Aborted() : Error("another replica failed") {}
};

/// A contiguous part of a flat buffer: [begin, end).
struct Range {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
};

/// Part `index` of [0, n) cut into `parts` contiguous pieces of whole grains (but for the end of the last),
/// whose numbers of grains differ by at most one.
Range part_of(int64_t n, int index, int parts, int64_t grain = 1);

class Collective {
 public:
  virtual ~Collective() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  virtual void barrier() = 0;
  /// values become the sums over all members, added in the order of ranks.
  virtual void all_reduce(std::span<double> values) = 0;
  /// Of n floats at `data`, this member's part (part_of(n, rank, size, 16), which is returned) becomes the
  /// sum over all members, added in the order of ranks. The rest of `data`, and everybody else's, must stay
  /// untouched until the next call.
  virtual Range reduce_scatter(float* data, int64_t n) = 0;
  /// Makes every pending and later call of every member throw Aborted. Safe from any thread.
  virtual void abort() noexcept = 0;
};

/// A group of `size` threads of this process. Members wait by spinning while each has a core of its own
/// (`spin`), else asleep.
std::vector<std::unique_ptr<Collective>> make_local_group(int size, bool spin);

}  // namespace dtrain
