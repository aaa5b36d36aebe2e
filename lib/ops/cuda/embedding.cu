// Rows of a table by their numbers, and the gradient of that table.
#include <limits>

#include "ops/cuda/cuda_ops.h"
#include "ops/cuda/reduce.h"
#include "ops/cuda/vector.h"

namespace dtrain::cuda {
namespace {

template <class T>
struct EmbeddingForward {
  const float* table;
  const int32_t* indices;
  T* dst;
  int64_t table_rows, columns;

  /// For N > 1 columns is a multiple of N.
  template <int N>
  __device__ void run(int64_t i) const {
    const Division place = divide(i, columns);
    const int64_t index = indices[place.quotient];
    float values[N];
    if (index >= 0 && index < table_rows) {
      load(table + index * columns + place.rest, values);
    } else {
#pragma unroll
      for (int j = 0; j < N; ++j) values[j] = std::numeric_limits<float>::quiet_NaN();
    }
    store(dst + i, values);
  }
};

// The table's gradient. Row r of the table belongs to the blocks with blockIdx.x = r % gridDim.x, each of
// which has kEmbeddingThreads of its columns. A block looks through all indices and lists those of its rows;
// then each thread adds what its column has there, in order.

constexpr int kEmbeddingThreads = 256;
constexpr int kAhead = 16;  // elements that a thread asks for before it adds the first

/// A block's indices among kEmbeddingThreads that follow one another.
struct Listed {
  int32_t row[kEmbeddingThreads];
  int32_t place[kEmbeddingThreads];  // after the first
  int32_t warp_counts[kEmbeddingThreads / kWarp];
};

/// Lists this thread's index where it is `mine`, in the threads' order; gives the number listed. What was
/// listed before has been read by all when all have come here again, past the first barrier.
__device__ inline int list(Listed& listed, bool mine, int32_t row) {
  const auto lane = static_cast<int>(threadIdx.x) % kWarp, warp = static_cast<int>(threadIdx.x) / kWarp;
  const unsigned lanes = __ballot_sync(kAllLanes, mine);
  if (lane == 0) listed.warp_counts[warp] = __popc(lanes);
  __syncthreads();
  int before = __popc(lanes & ((1u << lane) - 1)), count = 0;
  for (int w = 0; w < kEmbeddingThreads / kWarp; ++w) {
    if (w < warp) before += listed.warp_counts[w];
    count += listed.warp_counts[w];
  }
  if (mine) {
    listed.row[before] = row;
    listed.place[before] = static_cast<int32_t>(threadIdx.x);
  }
  __syncthreads();
  return count;
}

/// The sum of one row's column as far as it has come, which goes back to the table when the row changes.
struct RunningSum {
  float* column;  // of the table's gradient
  int64_t columns;
  int32_t row = -1;
  float value = 0.0f;

  __device__ void add(int32_t of_row, float x) {
    if (of_row != row) {
      put();
      row = of_row;
      value = column[row * columns];
    }
    value += x;
  }
  __device__ void put() const {
    if (row >= 0) column[row * columns] = value;
  }
};

/// diff_table is zero before.
template <class T>
__global__ void embedding_backward_kernel(const int32_t* indices, const T* diff_dst, float* diff_table,
                                          int64_t n, int64_t table_rows, int64_t columns) {
  __shared__ Listed listed;
  const int64_t column = int64_t{blockIdx.y} * kEmbeddingThreads + threadIdx.x;
  RunningSum sum{diff_table + column, columns};
  for (int64_t first = 0; first < n; first += kEmbeddingThreads) {
    const int64_t i = first + threadIdx.x;
    const int32_t row = i < n ? indices[i] : -1;
    const bool mine = row >= 0 && row < table_rows && static_cast<unsigned>(row) % gridDim.x == blockIdx.x;
    const int count = list(listed, mine, row);
    for (int begin = 0; begin < count && column < columns; begin += kAhead) {
      float values[kAhead];
#pragma unroll
      for (int k = 0; k < kAhead; ++k) {
        values[k] = begin + k < count
                        ? to_float(diff_dst[(first + listed.place[begin + k]) * columns + column])
                        : 0.0f;
      }
#pragma unroll
      for (int k = 0; k < kAhead; ++k) {
        if (begin + k < count) sum.add(listed.row[begin + k], values[k]);
      }
    }
  }
  if (column < columns) sum.put();
}

}  // namespace

void CudaOps::embedding_forward(const float* table, const int32_t* indices, void* dst, int64_t n,
                                int64_t table_rows, int64_t columns) {
  with_type(math_.type, [&](auto type) {
    using T = decltype(type);
    const bool vectors = columns % kVector<T> == 0 && all_aligned(table, dst);
    for_each<kVector<T>>(context_, n * columns, vectors,
                         EmbeddingForward<T>{table, indices, static_cast<T*>(dst), table_rows, columns});
  });
}

void CudaOps::embedding_backward(const int32_t* indices, const void* diff_dst, float* diff_table, int64_t n,
                                 int64_t table_rows, int64_t columns) {
  if (table_rows <= 0 || columns <= 0) return;
  const size_t bytes = static_cast<size_t>(table_rows * columns) * sizeof(float);
  check(cudaMemsetAsync(diff_table, 0, bytes, stream()), "clearing an embedding's gradient");
  const unsigned column_blocks = static_cast<unsigned>((columns + kEmbeddingThreads - 1) / kEmbeddingThreads);
  const dim3 grid(blocks_for(table_rows, 1, context_.multiprocessors()), column_blocks);
  with_type(math_.type, [&](auto type) {
    launch(embedding_backward_kernel<decltype(type)>, grid, kEmbeddingThreads, stream(), indices,
           static_cast<const decltype(type)*>(diff_dst), diff_table, n, table_rows, columns);
  });
}

}  // namespace dtrain::cuda
