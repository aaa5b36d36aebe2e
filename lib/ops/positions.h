// Rotary position embeddings.
#pragma once

#include <cstdint>

#include "base/host_device.h"

namespace dtrain {

/// An array of [samples, positions, heads, dim], to which rotary position embeddings are applied. dim must be
/// even. Elements i and i + dim / 2 of a head are the coordinates of a point, which is rotated by the angle
/// position * base^(-2 i / dim).
struct RotarySpec {
  int64_t samples = 0, positions = 0, heads = 0, dim = 0;
  int64_t step = 0;   ///< elements from one position to the next
  int64_t first = 0;  ///< the first position
  /// [positions]: the position of each row; if null, the positions are first, first + 1, ...
  const int32_t* at = nullptr;
  double base = 10000;

  DTRAIN_HOST_DEVICE int64_t pairs() const { return dim / 2; }
  /// Returns the number of floats of the table of cosines [positions, pairs] and sines [positions, pairs].
  DTRAIN_HOST_DEVICE int64_t table_floats() const { return 2 * positions * pairs(); }
};

}  // namespace dtrain
