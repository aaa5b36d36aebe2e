// Rotary and sinusoidal position embeddings. Angles are computed in double precision, because the angles of
// late positions are many turns and float32 would lose the fraction of the last turn.
#pragma once

#include <math.h>

#include "ops/positions.h"

namespace dtrain::math {

/// Writes entry i of the table, which is a cosine and a sine.
DTRAIN_HOST_DEVICE inline void rotary_table_entry(const RotarySpec& spec, int64_t i, float* table) {
  const int64_t pairs = spec.pairs(), position = spec.at ? spec.at[i / pairs] : spec.first + i / pairs;
  const double angle =
      static_cast<double>(position) *
      ::pow(spec.base, -2.0 * static_cast<double>(i % pairs) / static_cast<double>(spec.dim));
  table[i] = static_cast<float>(::cos(angle));
  table[spec.positions * pairs + i] = static_cast<float>(::sin(angle));
}

/// Returns element `column` of the encoding of a position. The encoding has `columns` elements: sines in the
/// even columns and cosines in the odd columns.
DTRAIN_HOST_DEVICE inline float sinusoidal_position(int64_t position, int64_t column, int64_t columns,
                                                    double max_wavelength) {
  const double exponent = static_cast<double>(column / 2 * 2) / static_cast<double>(columns);
  const double angle = static_cast<double>(position) * ::pow(max_wavelength, -exponent);
  return static_cast<float>(column % 2 == 0 ? ::sin(angle) : ::cos(angle));
}

/// Rotates the point (x, y).
DTRAIN_HOST_DEVICE inline void rotate(float cosine, float sine, float& x, float& y) {
  const float rotated = x * cosine - y * sine;
  y = y * cosine + x * sine;
  x = rotated;
}

}  // namespace dtrain::math
