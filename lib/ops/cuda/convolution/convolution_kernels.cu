#include "ops/cuda/convolution/convolution_kernels.h"
#include "ops/cuda/vector.h"

namespace dtrain::cuda {
namespace {

// All threads of a block together read or write kTileRows rows of a tile at a time.
constexpr int kTile = 32, kTileRows = 8;
constexpr int kTransposeThreads = kTile * kTileRows;

template <class From, class To>
__global__ void __launch_bounds__(kTransposeThreads, 6)
    transpose_kernel(const From* src, To* dst, int64_t rows, int64_t columns) {
  // The additional column spreads the elements of a column over all memory banks.
  __shared__ float tile[kTile][kTile + 1];
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
  const int64_t across = (columns + kTile - 1) / kTile, tiles = (rows + kTile - 1) / kTile * across;
  for (int64_t t = blockIdx.x; t < tiles; t += gridDim.x) {
    const int64_t row = t / across * kTile, column = t % across * kTile;
    for (int i = y; i < kTile; i += kTileRows) {
      if (row + i < rows && column + x < columns)
        tile[i][x] = to_float(src[(row + i) * columns + column + x]);
    }
    __syncthreads();
    for (int i = y; i < kTile; i += kTileRows) {
      if (column + i < columns && row + x < rows)
        dst[(column + i) * rows + row + x] = from_float<To>(tile[x][i]);
    }
    __syncthreads();
  }
}

template <class From, class To>
void transpose_as(CudaOps& ops, const From* src, To* dst, int64_t rows, int64_t columns) {
  const int64_t tiles = (rows + kTile - 1) / kTile * ((columns + kTile - 1) / kTile);
  launch(transpose_kernel<From, To>, blocks_for(tiles, 1, ops.context().multiprocessors()),
         dim3(kTile, kTileRows), ops.context().compute(), src, dst, rows, columns);
}

}  // namespace

void transpose(CudaOps& ops, const void* src, void* dst, int64_t rows, int64_t columns) {
  with_type(ops.compute_type(), [&](auto zero) {
    using T = decltype(zero);
    transpose_as(ops, static_cast<const T*>(src), static_cast<T*>(dst), rows, columns);
  });
}

void transpose_to_float(CudaOps& ops, DType type, const void* src, float* dst, int64_t rows,
                        int64_t columns) {
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    transpose_as(ops, static_cast<const T*>(src), dst, rows, columns);
  });
}

}  // namespace dtrain::cuda
