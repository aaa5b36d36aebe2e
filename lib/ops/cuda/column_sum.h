// Sums over rows, in a fixed order. A block has a tile of columns, and lanes that stride over the rows; where
// that would leave multiprocessors idle, over a part of the rows, and a second launch sums the parts.
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
inline constexpr int64_t kRowsOfLane = 32;  // at least

/// The sum of an array's columns.
template <class T>
struct Element {
  const T* src;
  int64_t columns;
  __device__ float load(int64_t r, int64_t c) const { return to_float(src[r * columns + c]); }
  __device__ float value(int64_t, int64_t, float loaded) const { return loaded; }
};

/// dst[blockIdx.y, c] = the sum of term(r, c) over part blockIdx.y of the rows. blockDim.y is a power of two.
/// A term is term.value(r, c, term.load(r, c)); each is made once, and value() may write its place.
template <class Term>
__global__ void __launch_bounds__(kColumnThreads)
    column_sum_kernel(const __grid_constant__ Term term, float* dst, int64_t rows, int64_t columns,
                      int64_t part_rows) {
  __shared__ float totals[kColumnThreads];
  const int64_t column = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const int64_t first = blockIdx.y * part_rows;
  const int64_t last = first + part_rows < rows ? first + part_rows : rows;
  float total = 0.0f;
  if (column < columns) {
    read_ahead<8>(
        first + threadIdx.y, last, blockDim.y, [&](int64_t r) { return term.load(r, column); },
        [&](int64_t r, const auto& loaded) { total += term.value(r, column, loaded); });
  }
  const unsigned here = threadIdx.y * blockDim.x + threadIdx.x;
  totals[here] = total;
  __syncthreads();
  for (unsigned half = blockDim.y / 2; half > 0; half /= 2) {
    if (threadIdx.y < half) totals[here] += totals[here + half * blockDim.x];
    __syncthreads();
  }
  if (threadIdx.y == 0 && column < columns) dst[blockIdx.y * columns + column] = totals[threadIdx.x];
}

/// dst[c] = the sum of term(r, c) over r. Uses the context's workspace.
template <class Term>
void sum_columns(CudaContext& context, const Term& term, float* dst, int64_t rows, int64_t columns) {
  if (columns <= 0) return;
  // Few columns leave more lanes to the rows, which lie side by side.
  const auto width =
      static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::min(columns, kColumnTile))));
  const dim3 block(static_cast<unsigned>(width), static_cast<unsigned>(kColumnThreads / width));
  const int64_t tiles = (columns + width - 1) / width;
  const int64_t worthwhile = rows / (kRowsOfLane * block.y), wanted = 4 * context.multiprocessors() / tiles;
  const int64_t room = static_cast<int64_t>(context.workspace_bytes() / sizeof(float)) / columns;
  const int64_t most = std::max<int64_t>(std::min({worthwhile, wanted, room}), 1);
  const int64_t part_rows = std::max<int64_t>((rows + most - 1) / most, 1);
  const int64_t parts = std::max<int64_t>((rows + part_rows - 1) / part_rows, 1);
  const dim3 grid(static_cast<unsigned>(tiles), static_cast<unsigned>(parts));
  if (parts == 1) {
    launch(column_sum_kernel<Term>, grid, block, context.compute(), term, dst, rows, columns, part_rows);
    return;
  }
  // The workspace holds nothing between the operations of compute().
  auto* const sums = static_cast<float*>(context.workspace());
  launch(column_sum_kernel<Term>, grid, block, context.compute(), term, sums, rows, columns, part_rows);
  launch(column_sum_kernel<Element<float>>, dim3(grid.x), block, context.compute(),
         Element<float>{sums, columns}, dst, parts, columns, parts);
}

}  // namespace dtrain::cuda
