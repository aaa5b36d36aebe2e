// Products of tiles of rows in shared memory. A block of threads has kTileLanes threads for each row of a
// tile; thread `lane` of a row has columns lane, lane + kTileLanes, and so on.
#pragma once

#include <cstdint>

#include "ops/cuda/reductions/reduce.h"
#include "ops/cuda/types.h"

namespace dtrain::cuda {

inline constexpr int kTileSize = 32, kTileThreads = 256;
inline constexpr int kTileLanes = kTileThreads / kTileSize, kTilePart = kTileSize / kTileLanes;

/// Number of steps of the inner loops that the compiler unrolls. If it unrolled all steps, it would keep more
/// elements of the tiles in registers and spill other registers.
inline constexpr int kTileUnroll = 8;

/// A tile of [kTileSize, kTileSize] numbers in shared memory. The rows are padded by one element, so the
/// elements of a column are in different memory banks and can be read at the same time.
struct SharedTile {
  float v[kTileSize][kTileSize + 1];
};

/// At most kTileSize consecutive rows of an array.
template <class T>
struct TileRows {
  const T* first;
  int64_t step;  ///< elements from one row to the next
  int count;
};

__device__ inline int tile_row() {
  return static_cast<int>(threadIdx.x) / kTileLanes;
}
__device__ inline int tile_lane() {
  return static_cast<int>(threadIdx.x) % kTileLanes;
}

/// Loads the columns [column, column + kTileSize) of the rows into `tile`. Elements past the last row or past
/// the last column are set to 0. The source pointer is advanced from row to row, because separate offsets for
/// all rows of all arrays would need too many registers.
template <class T>
__device__ inline void load_tile(const TileRows<T>& rows, int64_t column, int64_t columns, SharedTile& tile) {
  constexpr int kStep = kTileThreads / kTileSize;
  const int first = static_cast<int>(threadIdx.x) / kTileSize, c = static_cast<int>(threadIdx.x) % kTileSize;
  const int count = column + c < columns ? rows.count : 0;
  const T* src = rows.first + first * rows.step + column + c;
#pragma unroll
  for (int part = 0; part < kTileSize / kStep; ++part) {
    const int r = first + part * kStep;
    tile.v[r][c] = r < count ? to_float(*src) : 0.0f;
    src += kStep * rows.step;
  }
}

/// Sets dots[k] to the dot product of this thread's row of a and row lane + k * kTileLanes of b.
template <class T>
__device__ inline void multiply_rows(const TileRows<T>& a, const TileRows<T>& b, int64_t columns,
                                     SharedTile& left, SharedTile& right, float (&dots)[kTilePart]) {
#pragma unroll
  for (int k = 0; k < kTilePart; ++k) dots[k] = 0.0f;
  for (int64_t column = 0; column < columns; column += kTileSize) {
    __syncthreads();
    load_tile(a, column, columns, left);
    load_tile(b, column, columns, right);
    __syncthreads();
#pragma unroll kTileUnroll
    for (int c = 0; c < kTileSize; ++c) {
      const float x = left.v[tile_row()][c];
#pragma unroll
      for (int k = 0; k < kTilePart; ++k) dots[k] += x * right.v[tile_lane() + k * kTileLanes][c];
    }
  }
}

/// Multiplies this thread's row of weights by the rows of b and adds the product to `sums`. The product has
/// the columns from `first` on: sums[chunk * kTilePart + k] belongs to column first + chunk * kTileSize +
/// lane + k * kTileLanes.
template <class T, int kColumns>
__device__ inline void add_weighted_rows(const SharedTile& weights, const TileRows<T>& b, int64_t first,
                                         int64_t columns, SharedTile& right, float (&sums)[kColumns]) {
#pragma unroll
  for (int chunk = 0; chunk < kColumns / kTilePart; ++chunk) {
    const int64_t column = first + chunk * kTileSize;
    if (column < columns) {
      __syncthreads();
      load_tile(b, column, columns, right);
      __syncthreads();
#pragma unroll kTileUnroll
      for (int j = 0; j < kTileSize; ++j) {
        const float w = weights.v[tile_row()][j];
#pragma unroll
        for (int k = 0; k < kTilePart; ++k)
          sums[chunk * kTilePart + k] += w * right.v[j][tile_lane() + k * kTileLanes];
      }
    }
  }
}

/// Writes row[c] = scale * the sum of column c, for the columns of add_weighted_rows().
template <class T, int kColumns>
__device__ inline void store_columns(T* row, int64_t first, int64_t columns, float scale,
                                     const float (&sums)[kColumns]) {
#pragma unroll
  for (int i = 0; i < kColumns; ++i) {
    const int64_t c = first + i / kTilePart * kTileSize + tile_lane() + i % kTilePart * kTileLanes;
    if (c < columns) row[c] = from_float<T>(scale * sums[i]);
  }
}

/// Reduces the values of all lanes of a row with `combine`. Every lane gets the result.
template <class Combine>
__device__ inline float lanes_reduce(float value, Combine combine) {
#pragma unroll
  for (int bits = kTileLanes / 2; bits > 0; bits /= 2)
    value = combine(value, __shfl_xor_sync(kAllLanes, value, bits));
  return value;
}

}  // namespace dtrain::cuda
