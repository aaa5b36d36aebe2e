// The rotation of rotary position embeddings.
#pragma once

#include <math.h>

#include "ops/rotary.h"

namespace dtrain::math {

/// Writes entry i of the table of cosines and sines. Angles are computed in double: those of late positions
/// have many turns.
DTRAIN_HOST_DEVICE inline void rotary_table_entry(const RotarySpec& spec, int64_t i, float* table) {
  const int64_t pairs = spec.pairs(), position = spec.first + i / pairs;
  const double angle = static_cast<double>(position) *
                       ::pow(spec.base, -2.0 * static_cast<double>(i % pairs) / static_cast<double>(spec.dim));
  table[i] = static_cast<float>(::cos(angle));
  table[spec.positions * pairs + i] = static_cast<float>(::sin(angle));
}

/// Rotates the point (x, y).
DTRAIN_HOST_DEVICE inline void rotate(float cosine, float sine, float& x, float& y) {
  const float rotated = x * cosine - y * sine;
  y = y * cosine + x * sine;
  x = rotated;
}

}  // namespace dtrain::math
