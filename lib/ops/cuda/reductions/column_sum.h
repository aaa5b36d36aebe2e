// Sums over the rows of each column, in a fixed order. The summand of an element (a term) may consist of
// several values, which are summed separately. Each block processes a tile of columns. In a block, the lanes
// of a column sum different rows. If this would leave multiprocessors idle, each block sums only a part of
// the rows, and a second launch adds the sums of the parts.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "device/cuda/context.h"
#include "ops/cuda/launch.h"
#include "ops/cuda/read_ahead.h"
#include "ops/cuda/types.h"

namespace dtrain::cuda {

inline constexpr int kColumnThreads = 512;
inline constexpr int64_t kColumnTile = 32;
inline constexpr int64_t kRowsOfLane = 32;  // minimum number of rows that each lane sums

/// The arrays to which the sums of the columns are written. Sum number k of a column is written to
/// of[k][blockIdx.y * stride + column], unless of[k] is null.
template <int kSums>
struct SumPlaces {
  float* of[kSums];
  int64_t stride = 0;
};

// The interface of a term: kSums is its number of values; load(r, c) reads its operands; value(r, c, loaded)
// returns its values as Floats<kSums>. Both functions are called once per element. value() may overwrite the
// element that load() has read.

/// The term for summing the columns of an array.
template <class T>
struct Element {
  static constexpr int kSums = 1;
  const T* src;
  int64_t columns;
  __device__ float load(int64_t r, int64_t c) const { return to_float(src[r * columns + c]); }
  __device__ Floats<1> value(int64_t, int64_t, float loaded) const { return {loaded}; }
};

/// The term of a column sum whose addends are the sums of parts, stored as [parts, kSums, columns].
template <int kSumsOfParts>
struct PartSums {
  static constexpr int kSums = kSumsOfParts;
  const float* src;
  int64_t columns;
  __device__ Floats<kSums> load(int64_t r, int64_t c) const {
    Floats<kSums> sums;
#pragma unroll
    for (int k = 0; k < kSums; ++k) sums.v[k] = src[(r * kSums + k) * columns + c];
    return sums;
  }
  __device__ Floats<kSums> value(int64_t, int64_t, const Floats<kSums>& loaded) const {
    return loaded;
  }
};

/// Sums the terms of each column over part number blockIdx.y of the rows. blockDim.y must be a power of two.
template <class Term>
__global__ void __launch_bounds__(kColumnThreads, 2)
    column_sum_kernel(const __grid_constant__ Term term, SumPlaces<Term::kSums> dst, int64_t rows,
                      int64_t columns, int64_t part_rows) {
  constexpr int kSums = Term::kSums;
  __shared__ float totals[kSums][kColumnThreads];
  const int64_t column = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const int64_t first = blockIdx.y * part_rows;
  const int64_t last = first + part_rows < rows ? first + part_rows : rows;
  float total[kSums] = {};
  if (column < columns) {
    read_ahead<8>(
        first + threadIdx.y, last, blockDim.y, [&](int64_t r) { return term.load(r, column); },
        [&](int64_t r, const auto& loaded) {
          const Floats<kSums> values = term.value(r, column, loaded);
#pragma unroll
          for (int k = 0; k < kSums; ++k) total[k] += values.v[k];
        });
  }
  const unsigned here = threadIdx.y * blockDim.x + threadIdx.x;
#pragma unroll
  for (int k = 0; k < kSums; ++k) totals[k][here] = total[k];
  __syncthreads();
  for (unsigned half = blockDim.y / 2; half > 0; half /= 2) {
    if (threadIdx.y < half) {
#pragma unroll
      for (int k = 0; k < kSums; ++k) totals[k][here] += totals[k][here + half * blockDim.x];
    }
    __syncthreads();
  }
  if (threadIdx.y != 0 || column >= columns) return;
#pragma unroll
  for (int k = 0; k < kSums; ++k)
    if (dst.of[k]) dst.of[k][blockIdx.y * dst.stride + column] = totals[k][threadIdx.x];
}

/// Writes dst.of[k][c] = the sum over r of the k-th value of the term at (r, c). Uses the context's
/// workspace.
template <class Term>
void sum_columns(CudaContext& context, const Term& term, const SumPlaces<Term::kSums>& dst, int64_t rows,
                 int64_t columns) {
  constexpr int kSums = Term::kSums;
  if (columns <= 0) return;
  // If there are few columns, a block has more lanes per column. The memory accesses are still efficient,
  // because the elements of adjacent rows are then close together in memory.
  const auto width =
      static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::min(columns, kColumnTile))));
  const dim3 block(static_cast<unsigned>(width), static_cast<unsigned>(kColumnThreads / width));
  const int64_t tiles = (columns + width - 1) / width;
  const int64_t worthwhile = rows / (kRowsOfLane * block.y), wanted = 4 * context.multiprocessors() / tiles;
  const int64_t room = static_cast<int64_t>(context.workspace_bytes() / sizeof(float)) / (kSums * columns);
  const int64_t most = std::max<int64_t>(std::min({worthwhile, wanted, room}), 1);
  const int64_t part_rows = std::max<int64_t>((rows + most - 1) / most, 1);
  const int64_t parts = std::max<int64_t>((rows + part_rows - 1) / part_rows, 1);
  const dim3 grid(static_cast<unsigned>(tiles), static_cast<unsigned>(parts));
  if (parts == 1) {
    launch(column_sum_kernel<Term>, grid, block, context.compute(), term, dst, rows, columns, part_rows);
    return;
  }
  // The operations of the compute stream run one after the other, so no other operation uses the workspace at
  // the same time.
  auto* const sums = static_cast<float*>(context.workspace());
  SumPlaces<kSums> of_parts{{}, kSums * columns};
  for (int k = 0; k < kSums; ++k) of_parts.of[k] = sums + k * columns;
  launch(column_sum_kernel<Term>, grid, block, context.compute(), term, of_parts, rows, columns, part_rows);
  using Parts = PartSums<kSums>;
  launch(column_sum_kernel<Parts>, dim3(grid.x), block, context.compute(), Parts{sums, columns}, dst, parts,
         columns, parts);
}

}  // namespace dtrain::cuda
