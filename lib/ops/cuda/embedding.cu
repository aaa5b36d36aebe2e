// Embedding: lookup of table rows by index, and the gradient of the table.
#include <algorithm>
#include <limits>

#include "ops/cuda/cuda_ops.h"
#include "ops/cuda/reductions/reduce.h"
#include "ops/cuda/vector.h"

namespace dtrain::cuda {
namespace {

template <class T>
struct EmbeddingForward {
  const float* table;
  const int32_t* indices;
  T* dst;
  int64_t table_rows, columns;

  /// If N is greater than 1, the number of columns must be a multiple of N.
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

// The gradient of the table. Each block computes kWarp columns (one per lane) of a part of the table's rows:
// row r belongs to the blocks with blockIdx.y = r % gridDim.y.
//
// A block scans all indices and makes lists of the indices that refer to its rows. Each warp owns some of the
// rows, and it adds the gradients of the list's entries for these rows. Therefore, an element of the table is
// always changed by the same thread and in the same order (on GPUs with the same number of multiprocessors).
//
// If one row occurs very often (such as the padding row), its warp would take much longer than the others.
// Therefore, all warps of the block share the work for one row of each list: the row that occurs most often
// in a sample of the list.

constexpr int kThreads = 1024, kWarps = kThreads / kWarp;
constexpr int kRounds = 2;  // indices per thread that are scanned for one list
constexpr int kAhead = 16;  // elements that a thread loads before it adds the first element
// Minimum number of entries of a list for which the warps of a block share the work for one row.
constexpr int kSharing = kWarp;

/// A block's list. Of kRounds * kThreads consecutive indices, it contains the indices whose rows belong to
/// this block, in the order of the indices.
struct Listed {
  int32_t row[kRounds * kThreads];
  uint16_t place[kRounds * kThreads];  // position of the index among the scanned indices
  uint16_t taken[kWarps][2 * kWarp];   // entries that a warp still has to add
  float shared_sums[kWarps][kWarp];    // sums of the shared row, by warp and lane
  int32_t warp_counts[kRounds][kWarps];
  int32_t shared_row;
};

/// This thread's part of the next kRounds * kThreads indices. Positions past the last index have the row -1.
struct Indices {
  int32_t row[kRounds];

  __device__ void load(const int32_t* indices, int64_t n) {
#pragma unroll
    for (int round = 0; round < kRounds; ++round) {
      const int place = round * kThreads + static_cast<int>(threadIdx.x);
      row[round] = place < n ? indices[place] : -1;
    }
  }
};

/// Makes a list of the indices of all threads whose rows belong to this block, in the order of the indices.
/// Returns the length of the list. The new list may overwrite the previous list, because all threads have
/// finished reading the previous list when they pass the first barrier.
__device__ inline int list_rows(Listed& listed, const Indices& indices, int64_t table_rows) {
  const auto thread = static_cast<int>(threadIdx.x), lane = thread % kWarp, warp = thread / kWarp;
  unsigned mine[kRounds];
#pragma unroll
  for (int round = 0; round < kRounds; ++round) {
    const int32_t row = indices.row[round];
    mine[round] = __ballot_sync(kAllLanes, row >= 0 && row < table_rows && row % gridDim.y == blockIdx.y);
    if (lane == 0) listed.warp_counts[round][warp] = __popc(mine[round]);
  }
  __syncthreads();
  int count = 0;
#pragma unroll
  for (int round = 0; round < kRounds; ++round) {
    const int of_warp = listed.warp_counts[round][lane];
    const int before = warp_reduce(lane < warp ? of_warp : 0, Add{});
    if (mine[round] >> lane & 1) {
      const int at = count + before + __popc(mine[round] & ((1u << lane) - 1));
      listed.row[at] = indices.row[round];
      listed.place[at] = static_cast<uint16_t>(round * kThreads + thread);
    }
    count += warp_reduce(of_warp, Add{});
  }
  __syncthreads();
  return count;
}

/// Returns the row that occurs most often in a sample of kWarp entries of the list. If several rows are
/// equally frequent, returns the row with the greatest index. The entries of the sample are spread over the
/// list at uneven distances: with equal distances, sentences of equal length could all contribute their first
/// word. All threads of the block must call this function. The list must have at least kWarp entries.
__device__ inline int32_t most_frequent(Listed& listed, int count) {
  if (threadIdx.x < kWarp) {
    const auto i = static_cast<int>(threadIdx.x);
    const int begin = i * count / kWarp, end = (i + 1) * count / kWarp;
    const int32_t row = listed.row[begin + i * 7 % (end - begin)];
    const int64_t times = __popc(__match_any_sync(kAllLanes, row));
    const int64_t most = warp_reduce(times << 32 | row, [](int64_t a, int64_t b) { return a < b ? b : a; });
    if (threadIdx.x == 0) listed.shared_row = static_cast<int32_t>(most & 0xffffffff);
  }
  __syncthreads();
  return listed.shared_row;
}

/// Adds one thread's part of the gradients of a list's entries to the table. The thread handles the column
/// that belongs to its lane. All warps share the entries of one row, the shared row, which is the most
/// frequent row in a sample of the list (see above). The thread sums its warp's part of these entries in
/// shared_sum, and adds all entries of the other rows that its warp owns directly to the table.
template <class T>
struct Adder {
  const Listed& listed;
  const T* diff_dst;  // gradient at the first scanned index and the thread's column
  float* diff_table;  // gradient of the table at the thread's column
  int64_t columns;
  bool has_column;  // false past the last column
  int32_t shared_row;
  float shared_sum = 0.0f;

  /// Uses an atomic add, so that the thread need not wait for the old value. (No other thread adds to this
  /// element.) The instruction flushes denormal addends and sums to 0 (docs/architecture.md, "Denormal
  /// numbers").
  __device__ void add_to_table(int32_t row, float value) const {
    if (has_column) atomicAdd(diff_table + row * columns, value);
  }
  __device__ void add(const uint16_t* entries, int number) {
    for (int begin = 0; begin < number; begin += kAhead) {
      float values[kAhead];
#pragma unroll
      for (int k = 0; k < kAhead; ++k) {
        const bool reads = begin + k < number && has_column;
        values[k] = reads ? to_float(diff_dst[listed.place[entries[begin + k]] * columns]) : 0.0f;
      }
#pragma unroll
      for (int k = 0; k < kAhead; ++k) {
        if (begin + k < number) add(listed.row[entries[begin + k]], values[k]);
      }
    }
  }
  __device__ void add(int32_t row, float value) {
    if (row == shared_row) {
      shared_sum += value;
    } else {
      add_to_table(row, value);
    }
  }
};

/// Returns the warp of a block that owns a row of the table.
__device__ inline int owner_of(int32_t row) {
  return row / static_cast<int>(gridDim.y) % kWarps;
}

/// Adds the entries of a list for which this warp is responsible: the entries of the rows that it owns, and a
/// part of the entries of the shared row. For the shared row, entries 32 * k to 32 * k + 31 belong to warp k
/// % kWarps.
template <class T>
__device__ inline void add_own(Adder<T>& adder, uint16_t* taken, int count) {
  const auto lane = static_cast<int>(threadIdx.x) % kWarp, warp = static_cast<int>(threadIdx.x) / kWarp;
  int number = 0;
  for (int begin = 0; begin < count; begin += kWarp) {
    const int entry = begin + lane;
    const int32_t row = entry < count ? adder.listed.row[entry] : -1;
    const int owner = row == adder.shared_row ? begin / kWarp % kWarps : owner_of(row);
    const bool takes = row >= 0 && owner == warp;
    const unsigned lanes = __ballot_sync(kAllLanes, takes);
    if (takes) taken[number + __popc(lanes & ((1u << lane) - 1))] = static_cast<uint16_t>(entry);
    number += __popc(lanes);
    __syncwarp();
    if (number < kWarp && begin + kWarp < count) continue;
    adder.add(taken, number);
    number = 0;
    __syncwarp();
  }
}

/// Computes the table's gradient. diff_table must be zero at the start.
template <class T>
__global__ void __launch_bounds__(kThreads)
    embedding_backward_kernel(const int32_t* indices, const T* diff_dst, float* diff_table, int64_t n,
                              int64_t table_rows, int64_t columns) {
  static_assert(kWarps == kWarp, "a warp adds up the counts and the sums of all warps");
  __shared__ Listed listed;
  const auto lane = static_cast<int>(threadIdx.x) % kWarp, warp = static_cast<int>(threadIdx.x) / kWarp;
  const int64_t column = int64_t{blockIdx.x} * kWarp + lane;
  Indices next;
  next.load(indices, n);
  for (int64_t first = 0; first < n; first += kRounds * kThreads) {
    const Indices now = next;
    const int64_t following = first + kRounds * kThreads;
    next.load(indices + following, n - following);  // the load is in flight while this list is added
    const int count = list_rows(listed, now, table_rows);
    const int32_t shared_row = count < kSharing ? -1 : most_frequent(listed, count);
    Adder<T> adder{
        listed,    diff_dst + first * columns + column, diff_table + column, columns, column < columns,
        shared_row};
    add_own(adder, listed.taken[warp], count);
    if (shared_row < 0) continue;
    listed.shared_sums[warp][lane] = adder.shared_sum;
    __syncthreads();
    if (owner_of(shared_row) != warp) continue;
    float sum = 0.0f;
    for (int w = 0; w < kWarps; ++w) sum += listed.shared_sums[w][lane];
    adder.add_to_table(shared_row, sum);
  }
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
  const int64_t column_blocks = (columns + kWarp - 1) / kWarp;
  const int64_t classes = std::clamp<int64_t>(context_.multiprocessors() / column_blocks, 1, table_rows);
  const dim3 grid(static_cast<unsigned>(column_blocks), static_cast<unsigned>(classes));
  with_type(math_.type, [&](auto type) {
    launch(embedding_backward_kernel<decltype(type)>, grid, kThreads, stream(), indices,
           static_cast<const decltype(type)*>(diff_dst), diff_table, n, table_rows, columns);
  });
}

}  // namespace dtrain::cuda
