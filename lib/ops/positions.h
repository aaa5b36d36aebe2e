// Rotary position embeddings.
#pragma once

#include <cstdint>

#include "base/host_device.h"

namespace dtrain {

/// An array of [samples, positions, heads, dim], dim even. Elements i and i + dim / 2 of a head are the
/// coordinates of a point, which is rotated by the angle position * base^(-2 i / dim).
struct RotarySpec {
  int64_t samples = 0, positions = 0, heads = 0, dim = 0;
  int64_t step = 0;             ///< elements from one position to the next
  int64_t first = 0;            ///< the first position
  const int32_t* at = nullptr;  ///< the position of each row, [positions]; null: first, first + 1, ...
  double base = 10000;

  DTRAIN_HOST_DEVICE int64_t pairs() const { return dim / 2; }
  /// Returns the number of floats of the table, which has cosines and sines of [positions, pairs] each.
  DTRAIN_HOST_DEVICE int64_t table_floats() const { return 2 * positions * pairs(); }
};

}  // namespace dtrain
